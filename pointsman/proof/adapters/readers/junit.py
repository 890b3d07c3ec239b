"""JUnit XML, as surefire, gradle and many others write it; several documents may follow each other."""

import re
from xml.etree import ElementTree

from pointsman.proof.adapters.readers.report import ReadReport, result
from pointsman.proof.results import Outcome, TestResult

_DECLARATION = re.compile(r"<\?xml[^>]*\?>")


def read(text: str) -> ReadReport:
    """Reads every test case of every document."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        return ReadReport(problem="the report declares entities")
    documents = [part for part in _DECLARATION.split(text) if part.strip()]
    found = ReadReport()
    for document in documents:
        try:
            root = ElementTree.fromstring(document)  # noqa: S314 - without a document type there is nothing to expand
        except ElementTree.ParseError as error:
            return ReadReport(found.tests, f"the report is no XML: {error}")
        found.tests += [_case(case) for case in root.iter("testcase")]
    return found


def _case(case: ElementTree.Element) -> TestResult:
    name, parent = case.get("name", "?"), case.get("classname", "")
    outcome, message = Outcome.PASSED, ""
    for tag, found in (("error", Outcome.ERROR), ("failure", Outcome.FAILED), ("skipped", Outcome.SKIPPED)):
        child = case.find(tag)
        if child is not None:
            outcome, message = found, f"{child.get('message', '')}\n{child.text or ''}"
            break
    values = {"message": message, "file": case.get("file", ""), "seconds": _seconds(case.get("time", ""))}
    return result(f"{parent}#{name}" if parent else name, outcome, values)


def _seconds(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0
