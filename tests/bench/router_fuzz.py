"""A campaign against the router's procedure: `python -m tests.bench.router_fuzz [COUNT] [SEED]`, a million texts by default.

Texts are random Unicode, words of the rule file itself between marks, and hostile repetitions. Nothing may raise, point
outside its text, or be decided otherwise the second time.
"""

import json
import random  # noqa: TID251 - a campaign can be repeated from its seed
import sys
import time
from collections import Counter
from collections.abc import Iterator

from pointsman.services.router.domain.classification.classify import classify, lower_in_place
from pointsman.services.router.domain.enums import Confidence, Debate, Mode
from pointsman.services.router.domain.model import Classification
from pointsman.services.router.rules import standard_rule_book

COUNT = 1_000_000
LONGEST_LETTERS = 400
JOINTS = (" ", " ", " ", "", ", ", "\n", ". ", "? ", "; ", " && ", " | ", ": ")
MARKS = (
    "```", "~~~", "`", "?", "!", "...", "/", "//", "://", "..", "*.", "C:\\", "(", ")", "[", "]", "'", '"', "’", "&&", ">", ">>",
    "|", ";", "=", "-", "--force", "-delete", "@", ":", "<system>", "src/a.py", "https://x.y", "x.com", "getUser()", "a_b", "🙂",
    "\ud800", "\udfff", "\0", "\x01", "\x02", "\u200b", "\u2028", "\ufeff", "İ", "ß", "ﬁ", "é", "n̂", "𝔣𝔦𝔵", "ｆｉｘ", "\r\n", "\t",
)  # fmt: skip
PLANES = (
    (0x20, 0x7F),
    (0x80, 0x250),
    (0x370, 0x590),
    (0x3040, 0x3100),
    (0x4E00, 0xA000),
    (0xAC00, 0xD7A4),
    (0, 0x110000),
)


def check(text: str) -> Classification:
    """Decide one text, and prove that what the decision says holds together."""
    found = classify(standard_rule_book(), text)
    lower = lower_in_place(text, text.lower())
    assert len(lower) == len(text)
    for trigger in found.triggers:
        assert 0 <= trigger.start <= trigger.end <= len(text)
        if trigger.kind in ("path", "url", "host", "keyword"):
            assert lower[trigger.start : trigger.end] == trigger.name, (text, trigger)
    for reason in found.reasons:
        assert 0 <= reason.start <= reason.end <= len(text)
    if found.mode is Mode.ANSWER:
        assert (found.confidence, found.triggers, found.debate) == (Confidence.NONE, (), Debate.NONE)
    else:
        assert found.confidence is (Confidence.STRONG if len(found.triggers) >= 3 else Confidence.WEAK)
    if found.debate is Debate.PLANNING:
        assert found.reasons
        assert found.bypass is None
    assert found.rules
    return found


def words() -> list[str]:
    """The rule file's own words: those of English, and the entries of every other language's lists."""
    book = standard_rule_book()
    english = sorted(word for word in book.english.lexicon.flags if "\x01" not in word)
    lists = (getattr(rules, name) for rules in book.document.languages.values() for name in rules.__slots__)
    return english + sorted({entry.strip("^$*").replace("_", " ") for line in lists for entry in line.split()})


def text_of(chance: random.Random, known: list[str]) -> str:
    """One text: letters of some plane, the rules' words and marks in a row, or a few of them over and over."""
    kind = chance.randrange(4)
    if kind == 0:
        first, last = chance.choice(PLANES)
        return "".join(chr(chance.randrange(first, last)) for _ in range(chance.randint(0, 60)))
    pieces = [chance.choice(known if chance.random() < 0.8 else MARKS) for _ in range(chance.randint(1, 16))]
    if kind == 1:
        unit = chance.choice(JOINTS).join(pieces[:3]) + chance.choice(JOINTS)
        return (unit * chance.randint(1, 60))[:LONGEST_LETTERS]
    joint = chance.choice(JOINTS)
    if kind == 2:
        return joint.join(pieces)
    return "".join(piece.title() + chance.choice(JOINTS) for piece in pieces)


def texts(count: int, seed: int) -> Iterator[str]:
    """So many texts, the same for the same seed."""
    chance, known = random.Random(seed), words()
    return (text_of(chance, known) for _ in range(count))


def campaign(count: int, seed: int) -> dict[str, object]:
    """Decide so many twice: how often each mode came out, and the longest time that one took."""
    modes: Counter[str] = Counter()
    slowest = 0.0
    begun = time.perf_counter()
    for text in texts(count, seed):
        at = time.process_time()
        found = check(text)
        slowest = max(slowest, time.process_time() - at)
        assert classify(standard_rule_book(), text) == found, text
        modes[f"{found.mode}/{found.debate}"] += 1
    seconds = round(time.perf_counter() - begun, 1)
    return {"texts": count, **modes, "slowest_ms": round(slowest * 1000, 3), "seconds": seconds}


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    print(json.dumps(campaign(*(numbers + [COUNT, 1][len(numbers) :]))))
