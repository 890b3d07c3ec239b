"""Splits a Rust source into code and its test modules (`#[cfg(test)] mod …`), which stand in the same file."""

import re
from dataclasses import dataclass

_START = re.compile(
    r"#\s*\[\s*(?:cfg\s*\(\s*(?:test\b|all\s*\(\s*test\b|any\s*\(\s*test\b)|(?:\w+\s*::\s*)*test\b)[^\]]*\]"
)
_RAW = re.compile(r'b?r(#*)"')
_CHAR = re.compile(r"b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[0-9a-fA-F_]+\}|.)|[^\\'])'")


@dataclass(frozen=True, slots=True)
class RustSource:
    """A source: its text without test modules, and the modules."""

    code: str
    tests: tuple[str, ...]


def split_source(text: str) -> RustSource:
    """Splits at every item that is compiled for tests only."""
    code, tests, position = [], [], 0
    while (start := _next_attribute(text, position)) is not None:
        end = _end_of_item(text, start[1])
        code.append(text[position : start[0]])
        tests.append(text[start[0] : end])
        position = end
    return RustSource("".join([*code, text[position:]]), tuple(tests))


def with_base_tests(base: str | None, delivered: str) -> str:
    """The delivery's code with the test modules of the base; the text itself when the modules are the same."""
    after = split_source(delivered)
    before = split_source(base) if base is not None else RustSource("", ())
    if after.tests == before.tests:
        return delivered
    return "\n".join([after.code.rstrip("\n"), *before.tests, ""])


def _next_attribute(text: str, position: int) -> tuple[int, int] | None:
    """The next attribute outside comments and strings."""
    while position < len(text):
        if text[position] == "#" and (found := _START.match(text, position)):
            return found.start(), found.end()
        position = _step(text, position)
    return None


def _end_of_item(text: str, position: int) -> int:
    """The end of the item after an attribute: its closing brace, or its semicolon."""
    depth = 0
    while position < len(text):
        character = text[position]
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth <= 0:
                return position + 1
        elif character == ";" and depth == 0:
            return position + 1
        position = _step(text, position)
    return len(text)


def _step(text: str, position: int) -> int:
    """The position after one token: a whole comment, string or character, or a single sign."""
    if text.startswith("//", position):
        end = text.find("\n", position)
        return len(text) if end < 0 else end
    if text.startswith("/*", position):
        return _end_of_comment(text, position)
    if raw := _RAW.match(text, position):
        end = text.find('"' + raw[1], raw.end())
        return len(text) if end < 0 else end + 1 + len(raw[1])
    if text[position] == '"':
        return _end_of_string(text, position + 1)
    if text[position] == "'" and (character := _CHAR.match(text, position)):
        return character.end()
    word = re.compile(r"\w+").match(text, position)
    return word.end() if word else position + 1


def _end_of_comment(text: str, position: int) -> int:
    depth = 0
    while position < len(text):
        if text.startswith("/*", position):
            depth, position = depth + 1, position + 2
        elif text.startswith("*/", position):
            depth, position = depth - 1, position + 2
            if depth == 0:
                return position
        else:
            position += 1
    return len(text)


def _end_of_string(text: str, position: int) -> int:
    while position < len(text) and text[position] != '"':
        position += 2 if text[position] == "\\" else 1
    return position + 1
