"""Bundles the console's modules into one script: one file to load, and no build step."""

import re
from collections.abc import Mapping

IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z]+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
ALIAS = re.compile(r"(\w+) as (\w+)")


def bundle(sources: Mapping[str, str], entry: str) -> str:
    """The modules that the entry imports, dependencies first, each wrapped in a function."""
    ordered: dict[str, str] = {}
    _visit(entry, sources, ordered)
    return "\n".join(ordered.values())


def _visit(name: str, sources: Mapping[str, str], ordered: dict[str, str]) -> None:
    if name in ordered:
        return
    for found in IMPORT.finditer(sources[name]):
        _visit(found[2], sources, ordered)
    ordered[name] = _wrapped(name, sources[name])


def compact(source: str) -> str:
    """A module without indentation and lines of comment; no text of a module goes over several lines."""
    lines = (line.strip() for line in source.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _wrapped(name: str, source: str) -> str:
    """A module as a function that returns its exports; imports are taken from the results of other modules."""
    body = compact(IMPORT.sub(_import_statement, source))
    exported = ", ".join(found[2] for found in EXPORT.finditer(body))
    return "\n".join((f"const from_{name} = (() => {{", EXPORT.sub(r"\1", body), f"return {{ {exported} }};", "})();"))


def _import_statement(found: re.Match[str]) -> str:
    names = ALIAS.sub(r"\1: \2", found[1])
    return f"const {{{names}}} = from_{found[2]};"
