"""Finds references to something outside the conversation: files, folders, URLs, hosts. Linear in the length of the text."""

import itertools
import re
from dataclasses import dataclass

from pointsman.services.router.domain.enums import TriggerKind
from pointsman.services.router.domain.model import Trigger
from pointsman.services.router.domain.rule_document import ReferenceRules

_INNER = "\"'`()[]{}<>,;=|\x01"
_BLANKS = str.maketrans(_INNER, " " * len(_INNER))
_AROUND = _INNER + ".:!?"
_VISIBLE = re.compile(r"[!-~]+")
_ROOTS = ("/", "~/", "./", "../")
_SEPARATORS = frozenset(_INNER)
_RULES = {kind: f"reference.{kind}" for kind in TriggerKind}


@dataclass(frozen=True, slots=True)
class References:
    """The word sets of the reference rules."""

    extensions: frozenset[str]
    dot_names: frozenset[str]
    hosts: frozenset[str]
    folders: frozenset[str]
    exempt: frozenset[str]


def build_references(rules: ReferenceRules) -> References:
    """Builds the word sets from the rule file."""
    extensions = frozenset(rules.extensions.split())
    return References(
        extensions=extensions,
        dot_names=extensions | frozenset(rules.dot_names.split()),
        hosts=frozenset(rules.hosts.split()),
        folders=frozenset(rules.folders.split()),
        exempt=frozenset(rules.exempt.split()),
    )


def find_references(references: References, text: str) -> tuple[list[Trigger], bool]:
    """Every reference in a lower-case text, and whether the text has a dotted name of code."""
    found: list[Trigger] = []
    dotted = False
    position = 0
    for name in _names(text):
        position = text.find(name, position)
        kind = _kind_of(references, name)
        if kind is not None:
            found.append(Trigger(kind, name, _RULES[kind], position, position + len(name)))
        elif not dotted:
            dotted = _is_dotted_name(references, name)
        position += len(name)
    return found, dotted


def _names(text: str) -> list[str]:
    """The words with a dot or slash inside, without surrounding punctuation."""
    names: list[str] = []
    chunks = text.split() if text.isascii() else _VISIBLE.findall(text)
    for chunk in itertools.filterfalse(str.isalnum, chunks):
        if "." not in chunk and "/" not in chunk and "\\" not in chunk:
            continue
        name = chunk.rstrip(_AROUND).lstrip("\"'`()[]{}<>,;=|@:!?#")
        if not name.isalnum():
            names += _inner(name) if not _SEPARATORS.isdisjoint(name) else (name,)
    return names


def _inner(name: str) -> list[str]:
    """The parts of a word that quotes or brackets separate: open('a.txt')."""
    parts = (part.rstrip(".:!?").lstrip("@:!?#") for part in name.replace(")/", ") ").translate(_BLANKS).split())
    return [part for part in parts if "." in part or "/" in part or "\\" in part]


def _kind_of(references: References, name: str) -> TriggerKind | None:
    if not name or name in references.exempt:
        return None
    if "://" in name:
        return TriggerKind.URL if name[0].isalnum() else None
    if name[1:3] == ":\\":
        return TriggerKind.PATH
    if name.startswith(_ROOTS):
        return (
            TriggerKind.PATH if len(name) > 1 and name != "//" and (name[1].isalnum() or name[1] in "/._*$") else None
        )
    if "/" in name:
        return TriggerKind.PATH if _is_path(references, name) else None
    return _kind_of_dotted(references, name.partition(":")[0])


def _is_path(references: References, name: str) -> bool:
    """Whether a word with a slash is a path: a usual folder first, a file name last, or several segments with dots or dashes."""
    first, _, rest = name.partition("/")
    if first.lstrip(".") in references.folders or (first[:1] == "." and first[1:] in references.dot_names):
        return True
    if not rest:
        return any(mark in first for mark in "._-") or any(letter.isdigit() for letter in first)
    last = name.rsplit("/", 1)[1].partition(":")[0]
    if _is_file_name(references, last) or (last[:2] == "*." and last[2:] in references.extensions):
        return True
    return "/" in rest.rstrip("/") and any(mark in name for mark in "._-") and not name.replace("/", "").isdigit()


def _kind_of_dotted(references: References, name: str) -> TriggerKind | None:
    if name[0] == "." or name.startswith("*."):
        return TriggerKind.PATH if name.lstrip("*.") in references.dot_names or name[0] == "*" else None
    if _is_file_name(references, name):
        return TriggerKind.PATH
    stem, _, ending = name.rpartition(".")
    if ending in references.hosts and "@" not in name and stem.replace("-", "").replace(".", "").isalnum():
        return TriggerKind.HOST
    return None


def _is_file_name(references: References, name: str) -> bool:
    stem, _, ending = name.rpartition(".")
    return ending in references.extensions and stem.strip("._-*@") != "" and name not in references.exempt


def _is_dotted_name(references: References, name: str) -> bool:
    """Whether a word is a dotted name of code: module.function, object.method."""
    first, _, rest = name.partition(".")
    if name in references.exempt or "/" in name or len(first) < 2 or len(rest) < 2:
        return False
    return first.isidentifier() and rest.replace(".", "_").isidentifier() and first.isascii()
