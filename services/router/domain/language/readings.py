"""Reads messages in other languages than English: the row of each sentence by its term sets, then that of the message."""

import re

from pointsman.services.router.domain.language.han_variants import simplified
from pointsman.services.router.domain.language.languages import without_accents
from pointsman.services.router.domain.language.term_sets import (
    APPROVAL,
    DECLINED,
    DENIED,
    DO,
    EXPLANATION,
    FAULT,
    FOLLOW_UP,
    GENERAL,
    IMPERATIVE,
    JOINED,
    MAKE,
    NARRATED,
    OPENER,
    POLITE,
    PROSE,
    QUESTION,
    READ,
    REQUEST,
    SOLVED,
    SPENT,
    STARTER,
    TAG,
    TELL,
    THANKS,
    TURN,
    WELL,
    WISH,
    WORK,
    Language,
)

_WORD = re.compile(r"\w[\w'-]*")
_BREAK = re.compile(r"[.!?;？！。]\s*\S|\n")
_SENTENCE = re.compile(r"[^.!?;？！。\n]+[.!?;？！。\n]*")
_CLAUSE = re.compile(r"[^.!?;？！。\n，,；]+[.!?;？！。\n，,；]*")
_HAN_BLANK = re.compile("(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])")
"""A blank between Chinese letters, which in chats stands for a comma."""
_PARTS = {"latin": _SENTENCE, "cyrillic": _SENTENCE, "hangul": _SENTENCE, "han": _CLAUSE, "kana": _SENTENCE}
"""What a message of each script is divided into; in Chinese chats commas and blanks end sentences."""
_STRETCH = re.compile(r"[^.!?;？！。\n]{1,400}|[.!?;？！。\n]+")
"""A sentence, or 400 letters of a longer one: expressions that search for the beginning of a clause look no further back."""
_ENDED = re.compile(r"[.!?;？！。\n]\s*$")
_AND_THEN = re.compile("[て、]")
"""What joins a Japanese clause to the next."""
_ASKED_OF_YOU = STARTER | APPROVAL | REQUEST | JOINED | IMPERATIVE
"""Term sets of which one has to match if work is asked for beside a question."""
_DOING = DO | MAKE | READ
_KNOWN_OTHERWISE = _DOING | TELL | PROSE | QUESTION | THANKS | APPROVAL | DECLINED | SOLVED
_TOLD_OF = _DOING | WORK
_MORE_THAN_TOLD = POLITE | WISH | APPROVAL | QUESTION | JOINED
_FAULT_ASKED_ABOUT = FAULT | FOLLOW_UP


class Reading:
    """The result of reading a message in another language."""

    __slots__ = ("active", "hits", "language", "row", "rule", "text")

    def __init__(self, rule: str, language: Language, hits: int, text: str) -> None:
        self.row = f"other.{rule}"
        self.rule = f"{language.code}.{rule}"
        self.active = rule in _ACTIVE_ROWS
        self.language = language
        self.hits = language.names_of(hits)
        self.text = text


def read_language(language: Language, text: str) -> Reading:
    """Reads a message by the first row of _ROWS that holds, ignoring clauses that ask for nothing."""
    folded = _folded(language, text)
    hits = language.hits(folded)
    if hits & SPENT:  # the debate still weighs all term sets, including those of spent clauses
        rule = _rule_beside_spent(language, _without_spent(language, folded), bool(hits & FAULT))
    else:
        rule, hits = _rule_of(language, folded, hits)
    return Reading(rule, language, hits, folded)


def _folded(language: Language, text: str) -> str:
    """The text without accents, or with simplified characters; every letter stays where it is."""
    if language.script == "latin":
        return without_accents(text)
    return _HAN_BLANK.sub("，", simplified(text)) if language.script == "han" else text


def _rule_beside_spent(language: Language, text: str, faulty: bool) -> str:
    """The row of the text without its spent clauses; after a turn ("but …") a fault named in a spent clause counts."""
    rule, hits = _rule_of(language, text, language.hits(text))
    if hits & TURN:
        return "fault" if faulty and rule == "statement" else rule
    return "declined" if rule in _SOFT_ROWS or rule == "statement" else rule


def _without_spent(language: Language, text: str) -> str:
    """The text with blanks for clauses about what is done already, left to the writer, or not to be done."""
    return "".join([_cleared(language, stretch) for stretch in _STRETCH.findall(text)])


def _cleared(language: Language, stretch: str) -> str:
    """One stretch without its spent clauses; a "but" ends such a clause."""
    pieces: list[str] = []
    position = 0
    for start, end in language.term_sets.spans("spent", stretch):
        turned = language.term_sets.first("turn", stretch[start:end])
        length = turned[0] if turned is not None and turned[0] else end - start
        pieces += (stretch[position:start], " " * length)
        position = start + length
    return "".join((*pieces, stretch[position:])) if position else stretch


def _rule_of(language: Language, text: str, hits: int) -> tuple[str, int]:
    """The row of a message: of its only sentence, or of the one that weighs most."""
    if hits & _FAULT_ASKED_ABOUT == _FAULT_ASKED_ABOUT and not hits & GENERAL:
        return "fault", hits
    if len(parts := _PARTS[language.script].findall(text)) > 1:
        return _rule_of_parts(language, parts), hits
    return _rule_of_part(language, text, hits)


def _rule_of_part(language: Language, text: str, hits: int) -> tuple[str, int]:
    """The row of one sentence or clause."""
    if hits & TAG and (row := _row_before_tag(language, text)):
        return row, hits
    if hits & EXPLANATION and not _does_more(language, text):
        return "tell", hits
    asked = "?" in text or "？" in text or "¿" in text or text[-1:] in _ASKING_PARTICLES
    if hits & GENERAL or (asked and not hits & REQUEST):
        hits &= ~POLITE
    if hits & OPENER and _asks_once(text):
        hits &= ~POLITE
    elif hits & STARTER and not asked:
        hits &= ~QUESTION
    hits = _with_unlisted_imperative(language, text, _without_told(hits))
    return _first_row(hits, hits & PROSE != 0 and _prose_rules(language, text, hits)), hits


def _row_before_tag(language: Language, text: str) -> str | None:
    """The row of the order that a tag follows; None for a statement."""
    tag = language.term_sets.first("tag", text)
    before = "" if tag is None else text[: tag[0]].rstrip(" ,、，")
    hits = language.hits(before)
    if not before or hits & (TAG | QUESTION) or before.endswith(_OR):
        return None
    row = _rule_of_part(language, before, hits)[0]
    return row if row in _ASKED_ROWS else None


def _without_told(hits: int) -> int:
    """Drops term sets that only belong to an explanation to give, or to what the writer narrates."""
    if hits & EXPLANATION:
        hits &= ~TELL
    if hits & NARRATED and not hits & _MORE_THAN_TOLD:
        hits &= ~_TOLD_OF
    return hits


def _with_unlisted_imperative(language: Language, text: str, hits: int) -> int:
    """Adds DO if the first word looks like an imperative with its object and is not a stop word."""
    if (
        not hits & IMPERATIVE or hits & _KNOWN_OTHERWISE or text[:1] == " "
    ):  # a blank at the start: a spent clause was removed
        return hits
    first = _WORD.search(text)
    return hits if first is None or first.group() in language.stopwords else hits | DO


def _does_more(language: Language, text: str) -> bool:
    """Whether work is asked for before or after an explanation: look it up and tell me."""
    explanation = language.term_sets.first("told", text)
    if explanation is None:
        return False
    before = _SENTENCE.findall(text[: explanation[0]])
    if language.script == "kana" and before and not _AND_THEN.search(before[-1]):
        before = []  # a noun with a particle: what changed with the fix
    if before and not _ENDED.search(before[-1]) and language.hits(before[-1]) & _DOING:
        return True
    return language.hits(text[explanation[1] :]) & JOINED != 0


def _rule_of_parts(language: Language, parts: list[str]) -> str:
    """The row of a message with several parts: work that is asked for outweighs faults and wishes, these a question, this talk."""
    read = [(_rule_of_part(language, part.strip(), hits)[0], hits) for part in parts if (hits := language.hits(part))]
    rows = {row for row, _ in read} or {"statement"}
    if "question" in rows:
        general = any(hits & GENERAL for row, hits in read if row == "question")
        rows = {row for row, hits in read if not _explains_question(language, row, hits, general)}
        if read[-1][0] in _HARD_ROWS:  # an order after the question is none of its background
            rows.add(read[-1][0])
    return min(rows, key=_WEIGHT_OF_ROW.__getitem__)


def _explains_question(language: Language, row: str, hits: int, general: bool) -> bool:
    """Whether a part only explains the question beside it: what writers narrate of themselves, work that nobody asks for."""
    if row in _SOFT_ROWS and (general or hits & NARRATED):
        return True
    if language.script == "han":  # whose verbs have no form that separates an imperative from a statement
        return False
    return row in _HARD_ROWS and not hits & _ASKED_OF_YOU


def _asks_once(text: str) -> bool:
    """Whether the text is one question and nothing else."""
    asked = text.rstrip()
    return asked[-1:] in ("?", "？") and _BREAK.search(asked[:-1]) is None


def _prose_rules(language: Language, text: str, hits: int) -> bool:
    """Whether prose is what the text is about: the head noun decides, which comes first in Europe and last in East Asia."""
    if hits & DO and not hits & (MAKE | TELL | QUESTION):
        return False
    if not hits & WORK:
        return not hits & FAULT or hits & (MAKE | TELL | QUESTION) != 0
    if language.script in _HEAD_LAST:
        if hits & (DO | FAULT | READ):
            return False
        return language.term_sets.spans("prose", text)[-1][0] > language.term_sets.spans("work", text)[-1][0]
    finders, searched = language.term_sets.finders, text.encode()  # offsets in bytes compare like offsets in letters
    return finders["prose"](searched, 0)[0] < finders["work"](searched, 0)[0]


_ASKING_PARTICLES = ("吗", "呢")
_HEAD_LAST = frozenset({"han", "kana", "hangul"})
_SOFT_ROWS = frozenset({"fault", "unlisted", "wish", "work"})
_HARD_ROWS = frozenset({"approval", "order", "make", "read"})
_OR = (" o", " ou", " oder", " или")
_ASKED_ROWS = _HARD_ROWS | {"unlisted", "wish"}
"""Rows of requests, not of statements."""
_WEIGHTS = (
    "order",
    "make",
    "read",
    "approval",
    "fault",
    "wish",
    "question",
    "unlisted",
    "tell",
    "prose",
    "work",
    "declined",
    "thanks",
    "statement",
)
_WEIGHT_OF_ROW = {row: weight for weight, row in enumerate(_WEIGHTS)}
_ACTIVE_ROWS = frozenset({"approval", "fault", "order", "make", "read", "unlisted", "wish", "work"})
_ASKING = 1 << 60
"""A question without a polite request."""
_HEAD = 1 << 61
"""The head noun is prose."""
_ROWS: tuple[tuple[str, int, int], ...] = (
    ("declined", WELL, QUESTION | FAULT | WISH | TURN | POLITE | DENIED | STARTER | JOINED | APPROVAL),
    ("declined", DECLINED, QUESTION | FAULT | WISH),
    ("declined", SOLVED, QUESTION | WISH | TURN),
    ("approval", APPROVAL, _ASKING),
    ("fault", FAULT, _ASKING | _HEAD),
    ("question", _ASKING, 0),
    ("fault", THANKS | TURN | WORK, _HEAD),
    ("prose", _HEAD, 0),
    ("order", DO, 0),
    ("make", MAKE | WORK, 0),
    ("make", MAKE | STARTER, 0),
    ("make", MAKE, TELL),
    ("tell", TELL, 0),
    ("read", READ, 0),
    ("thanks", THANKS, WORK),
    ("wish", WISH, 0),
    ("thanks", THANKS, 0),
    ("unlisted", POLITE, 0),
    ("question", QUESTION, 0),
    ("work", WORK, 0),
)
"""Rows of (name, term sets that must match, term sets that must not); the first row that holds decides."""


def _first_row(hits: int, prose: bool) -> str:
    if hits & QUESTION and not hits & POLITE:
        hits |= _ASKING
    if prose:
        hits |= _HEAD
    for name, needed, without in _ROWS:
        if hits & needed == needed and not hits & without:
            return name
    return "statement"
