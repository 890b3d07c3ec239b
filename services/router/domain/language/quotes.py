"""Blanks text that is not the user's own: quoted mail, block quotes, pasted logs."""

import re
from collections.abc import Iterable

from pointsman.services.router.domain.language.lexicon import MASK, Lexicon
from pointsman.services.router.domain.language.scan import Message
from pointsman.services.router.domain.language.sentence import Sentence, make_sentences, sentences_of
from pointsman.services.router.domain.patterns import PatternSet, Span

QUOTES = frozenset({"quoted.block", "quoted.mail"})
LOG = "quoted.log"
_OVERRIDE = "override.user"
_VISIBLE = re.compile(r"\S")
_WORD = re.compile(rf"\w|{MASK}")


def blank_quotes(patterns: PatternSet, message: Message) -> None:
    """Blanks quoted mail and block quotes; a message that is nothing else keeps its words, but cannot override a debate."""
    spans = [span for name in QUOTES & message.shapes for span in patterns.spans(name, message.lower)]
    masked = _blanked(message.masked, spans)
    if _WORD.search(masked) is None:
        message.shapes -= {_OVERRIDE}
        return
    message.masked, message.lower = masked, _blanked(message.lower, spans)


def blank_logs(patterns: PatternSet, lexicon: Lexicon, marks: int, message: Message) -> list[Sentence]:
    """Blanks the lines of pasted logs and returns the remaining sentences, of which there may be none."""
    spans = patterns.spans(LOG, message.lower)
    message.lower = _blanked(message.lower, spans)
    return make_sentences(lexicon, sentences_of(_blanked(message.masked, spans), marks), message)


def _blanked(text: str, spans: Iterable[Span]) -> str:
    """The text with blanks in these spans, every other letter at its position."""
    pieces: list[str] = []
    position = 0
    for start, end in sorted(spans):
        if end > position:
            begin = max(start, position)
            pieces += (text[position:begin], _VISIBLE.sub(" ", text[begin:end]))
            position = end
    return "".join((*pieces, text[position:]))
