"""What bypasses a debate: the user's override in their own words, a read-only message, an earlier debate of the same task."""

import bisect
import itertools
import re
from collections.abc import Iterable

from pointsman.services.router.domain.enums import Bypass
from pointsman.services.router.domain.language.scan import Message, fences
from pointsman.services.router.domain.patterns import PatternSet, Span

_OVERRIDE = "override.user"
_INLINE = "quoted.inline"
_EDGES = re.compile(r"\w(?:.*\w)?", re.DOTALL)
_CLAUSE_LETTERS = 120
_CLAUSE_END = re.compile(r"[.!?;:,\n，。；：！？、]")
_DENIAL = re.compile(
    r"\b(?:not|never|no|nor|dont|cannot|without|instead of|rather than|\w+n't|nicht|nichts|nie|niemals|kein\w*|ne|pas|jamais"
    r"|rien|nunca|nada|não|nao|non|mai)\b|\bn'|[不别別勿]"
)


def bypass_of(patterns: PatternSet, message: Message, reads: bool) -> Bypass | None:
    """Finds the bypass of highest precedence; trivial commands are handled before."""
    if _OVERRIDE in message.shapes and _overrides(patterns, message):
        return Bypass.USER_OVERRIDE
    if reads:
        return Bypass.READ_ONLY
    return Bypass.ALREADY_DEBATED if message.already_debated else None


def _overrides(patterns: PatternSet, message: Message) -> bool:
    """Whether the user overrides the debate in their own words, without a negation before it in the same clause."""
    spans = _own_words(patterns, message, patterns.spans(_OVERRIDE, message.lower))
    return any(not _is_denied(message.lower, start, end) for start, end in spans)


def _own_words(patterns: PatternSet, message: Message, spans: Iterable[Span]) -> list[Span]:
    """Drops spans inside quotations and code fences; a message that is one whole quotation counts as the writer's own."""
    text = message.lower
    quoted = list(fences(text))
    if _INLINE in message.shapes:
        whole = _edges(text, (0, len(text)))
        quoted += [span for span in patterns.spans(_INLINE, text) if not (span[0] <= whole[0] and whole[1] <= span[1])]
    if not quoted:
        return list(spans)
    quoted.sort()
    starts = [start for start, _ in quoted]
    # The furthest end of all spans that begin up to each start, so that one binary search decides whether a span is inside one.
    furthest = list(itertools.accumulate((end for _, end in quoted), max))
    return [span for span in spans if not _is_within(_edges(text, span), starts, furthest)]


def _is_within(span: Span, starts: list[int], furthest: list[int]) -> bool:
    before = bisect.bisect_right(starts, span[0])
    return before > 0 and furthest[before - 1] >= span[1]


def _edges(text: str, span: Span) -> Span:
    """The span from its first to its last letter."""
    found = _EDGES.search(text, *span)
    return span if found is None else found.span()


def _is_denied(text: str, start: int, end: int) -> bool:
    while start < end and not text[start].isalnum():
        start += 1
    clause = _CLAUSE_END.split(text[max(0, start - _CLAUSE_LETTERS) : start])[-1].strip()
    return (
        _DENIAL.search(clause.removesuffix("no")) is not None
    )  # "no, just do it": this "no" answers an earlier message
