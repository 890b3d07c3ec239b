"""Reads the route marker from an agent's transcript. Transcripts are hostile: every step is linear and bounded."""

import bisect
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from pointsman._shared.strict_json import JsonError, decode_prefix
from pointsman.services.pipeline.domain.enums import RouteSource, RouteTarget, Verdict
from pointsman.services.pipeline.domain.route import ReportedRoute, choose_route

MAX_TRANSCRIPT_CHARACTERS = 1_048_576
MAX_MARKER_CHARACTERS = 4096
MAX_UNPARSABLE = 512
MAX_MARKERS = 4096
MAX_CANDIDATES = 32
MAX_DEPTH = 16

_NAME = "PIPELINE_ROUTE:"
_BLANK = " \t\r\n"
_OPENER_CHARACTERS = 68
_OLD_NAME = "PIPELINE_VERDICT:"
_OLD_BODY = re.compile(r"[ \t\r\n]{0,64}(PASS|FAIL)(?::[ \t]{0,8}([A-Za-z]{1,16}))?[ \t\r\n]{0,64}-->")
_SPACE = re.compile(r"[ \t\r\n]*")
_FENCE = re.compile(r"^[ \t]{0,12}(?:[-*+] |[0-9]{1,3}[.)] )?(`{3,}|~{3,})([^\n]{0,256})", re.MULTILINE)
_OUTPUT_NAMES = "tool_result|tool_output|tool_response|function_results|stdout|stderr|local-command-stdout|output"
_OUTPUT = re.compile(rf"^[ \t]{{0,12}}<(/?)({_OUTPUT_NAMES})(?: [^<>\n]{{0,200}})?>", re.MULTILINE)
_VALUES = "|".join((*Verdict, *RouteTarget))
_CHOICE = re.compile(
    rf"(?:{_VALUES})(?:[ \t]{{0,8}}(?:[|/,]|\bor\b)[ \t]{{0,8}}(?:or[ \t]{{1,8}})?(?:{_VALUES}))+", re.IGNORECASE
)
_QUOTE = re.compile(r"[ \t]{0,12}>")


def parse_route(transcript: str, nonce: str | None = None) -> ReportedRoute | None:
    """The last valid route, or None; with a nonce, the last that carries it."""
    return choose_route(find_routes(transcript), nonce)


def find_routes(transcript: str) -> tuple[ReportedRoute, ...]:
    """The valid routes of a transcript, the last first, one for each nonce; an old verdict only if there is no route."""
    texts = [_Text(text) for text in reversed(assistant_texts(_tail(transcript))) if "PIPELINE_" in text]
    found: dict[str | None, ReportedRoute] = {}
    for reported in itertools.islice(_routes(texts), MAX_MARKERS):
        found.setdefault(reported.nonce, reported)
        if len(found) == MAX_CANDIDATES:
            break
    if found:
        return tuple(found.values())
    return tuple(itertools.islice(_old_verdicts(texts), 1))


def _tail(transcript: str) -> str:
    """The end of a transcript that is too long, from the start of a line."""
    if len(transcript) <= MAX_TRANSCRIPT_CHARACTERS:
        return transcript
    tail = transcript[-MAX_TRANSCRIPT_CHARACTERS:]
    return tail[tail.find("\n") + 1 :]


def assistant_texts(transcript: str) -> list[str]:
    """The texts of the agent: of JSON lines the texts of assistant messages, else the whole transcript."""
    begun = transcript.lstrip()
    if not begun.startswith("{") or _message(begun.split("\n", 1)[0]) is None:
        return [transcript]
    return [text for line in begun.split("\n") for text in _texts_of(_message(line))]


def _message(line: str) -> dict[str, Any] | None:
    stripped = line.strip()
    if not stripped.startswith("{"):
        return None
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and ("type" in value or "role" in value) else None


def _texts_of(message: dict[str, Any] | None) -> Iterator[str]:
    if message is None:
        return
    inner = message.get("message")
    body = inner if isinstance(inner, dict) else message
    if "assistant" not in (message.get("type"), body.get("role")):
        return
    content = body.get("content")
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
            yield block["text"]


class _Text:
    """A text that is searched for markers from the end, without those in code or quotes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._hidden = (list(_fences(text)), list(_outputs(text)))

    def openers(self, name: str) -> Iterator[int]:
        """The end of each `<!-- NAME` outside code and quotes, the last first."""
        position = self.text.rfind(name)
        while position >= 0:
            before = position
            if self.text[max(0, position - _OPENER_CHARACTERS) : position].rstrip(_BLANK).endswith("<!--"):
                hidden_from = self._hidden_from(position)
                if hidden_from is None:
                    yield position + len(name)
                else:
                    before = hidden_from
            position = self.text.rfind(name, 0, before)

    def _hidden_from(self, position: int) -> int | None:
        """The start of the fenced code, quoted output, block quote or code span around the position."""
        for spans in self._hidden:
            before = bisect.bisect_right(spans, (position, len(self.text))) - 1
            if before >= 0 and position < spans[before][1]:
                return spans[before][0]
        lookback = max(0, position - MAX_MARKER_CHARACTERS)
        line_start = max(lookback, self.text.rfind("\n", lookback, position) + 1)
        if _QUOTE.match(self.text, line_start):
            return line_start
        if self.text.count("`", line_start, position) % 2 == 1:
            return self.text.rfind("`", line_start, position)
        return None


def _fences(text: str) -> Iterator[tuple[int, int]]:
    opened: tuple[int, str] | None = None
    for match in _FENCE.finditer(text):
        fence, rest = match.group(1), match.group(2)
        if opened is None:
            if not (fence[0] == "`" and "`" in rest):
                opened = (match.start(), fence)
        elif fence.startswith(opened[1]) and not rest.strip():
            yield opened[0], match.end()
            opened = None
    if opened is not None:
        yield opened[0], len(text)


def _outputs(text: str) -> Iterator[tuple[int, int]]:
    opened: tuple[int, str] | None = None
    for match in _OUTPUT.finditer(text):
        closes, name = match.group(1) == "/", match.group(2)
        if opened is None and not closes:
            opened = (match.start(), name)
        elif opened is not None and closes and name == opened[1]:
            yield opened[0], match.end()
            opened = None
    if opened is not None:
        yield opened[0], len(text)


def _routes(texts: list[_Text]) -> Iterator[ReportedRoute]:
    unparsable = 0
    for body in (text.text[end : end + MAX_MARKER_CHARACTERS] for text in texts for end in text.openers(_NAME)):
        fields = _decode(body)
        if fields is not None and not _is_template(fields):
            yield _reported(fields)
            continue
        unparsable += 1
        if unparsable == MAX_UNPARSABLE:
            return


def _old_verdicts(texts: list[_Text]) -> Iterator[ReportedRoute]:
    for text in texts:
        for end in text.openers(_OLD_NAME):
            match = _OLD_BODY.match(text.text, end)
            if match:
                yield ReportedRoute(RouteSource.OLD_VERDICT, verdict=match.group(1), severity=match.group(2))


def _decode(text: str) -> dict[str, Any] | None:
    """The JSON object of a marker, if nothing but the end of the marker follows it."""
    start = _end_of_space(text, 0)
    if not text.startswith("{", start) or "-->" not in text:
        return None
    fields: dict[str, Any]
    try:
        fields, end = decode_prefix(text, start, MAX_DEPTH)
    except JsonError:
        return None
    return fields if text.startswith("-->", _end_of_space(text, end)) else None


def _is_template(fields: dict[str, Any]) -> bool:
    """Whether verdict or route is still a choice, as in our own directives: "PASS or FAIL", "NEXT|DEV"."""
    values = (fields.get(name) for name in ("verdict", "route"))
    return any(isinstance(value, str) and _CHOICE.fullmatch(value.strip(_BLANK)) for value in values)


def _end_of_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _reported(fields: dict[str, Any]) -> ReportedRoute:
    return ReportedRoute(
        RouteSource.MARKER,
        verdict=_text(fields.get("verdict")),
        route=_text(fields.get("route")),
        severity=_text(fields.get("severity")),
        context_file=_text(fields.get("context_file")),
        hint=_text(fields.get("hint")),
        barrier_group=_text(fields.get("barrierGroup", fields.get("barrier_group"))),
        nonce=_text(fields.get("nonce")),
    )


def _text(value: Any) -> str | None:
    """Text as it is; any other value becomes text that matches no enum."""
    if value is None:
        return None
    return value if isinstance(value, str) else f"({type(value).__name__})"
