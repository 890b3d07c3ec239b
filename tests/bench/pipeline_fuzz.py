"""A campaign against the transcript reader: `python -m tests.bench.pipeline_fuzz [COUNT] [SEED]`, a million by default.

Transcripts are put together from pieces of markers, fences, quotes and rubbish, and then damaged. Nothing may raise, take
long, or let an invented verdict through unmarked.
"""

import json
import random  # noqa: TID251 - a campaign can be repeated from its seed
import sys
import time

from pointsman.services.pipeline.domain.marker import candidates
from pointsman.services.pipeline.domain.route import MAX_HINT_CHARACTERS, repair
from pointsman.services.pipeline.domain.words import Correction, StageKind

COUNT = 1_000_000
PIECES = (
    '<!-- PIPELINE_ROUTE: {"verdict":"PASS","route":"NEXT"} -->', '<!-- PIPELINE_ROUTE: {"verdict":"FAIL"} -->',
    '<!-- PIPELINE_ROUTE: {"verdict":"FAIL","hint":"a --> b","nonce":"n"} -->', "<!-- PIPELINE_VERDICT: FAIL:HIGH -->",
    "<!-- PIPELINE_ROUTE:", "<!--", "-->", "PIPELINE_ROUTE:", "PIPELINE_VERDICT:", "{", "}", "[", "]", '"', ":", ",", "\\",
    "\n", "\n\n", "```\n", "~~~~\n", "\n> ", "`", "<tool_result>\n", "</tool_result>\n", "<stdout>", '"verdict"', '"route"',
    "NaN", "Infinity", "1e999", "9" * 50, "\\u0000", "\\ud83d", "\x00", "\ud800", "РASS", "ＰＡＳＳ", " " * 70, "\u2028",
    '{"type":"assistant","message":{"content":[{"type":"text","text":"', '"}]}}\n', '{"role":"user","content":"', "[" * 40,
    "All tests pass.", "CRITICAL: nothing", "null", "true",
)  # fmt: skip


def transcript(chance: random.Random) -> str:
    """One transcript: pieces in a row, with a few characters changed, doubled or lost."""
    text = "".join(chance.choice(PIECES) for _ in range(chance.randint(1, 24)))
    for _ in range(chance.randint(0, 3)):
        place = chance.randrange(len(text) + 1)
        cut = chance.choice((0, 0, 1, 5))
        text = (
            text[:place] + chance.choice(("", "", chr(chance.randrange(0x3000)), '"', "-", "{")) + text[place + cut :]
        )
    return text


def check(text: str) -> bool:
    """Read one; whether there was a route in it."""
    found = candidates(text)
    for reported in found:
        route = repair(reported, StageKind.REVIEW)
        assert len(route.hint) <= MAX_HINT_CHARACTERS
        assert route.degraded == route.was(Correction.VERDICT_REPAIRED)
    return bool(found)


def campaign(count: int, seed: int) -> dict[str, float]:
    """Read so many; how many had a route, and the longest time one took."""
    chance = random.Random(seed)
    routes, slowest = 0, 0.0
    begun = time.perf_counter()
    for _ in range(count):
        text = transcript(chance)
        at = time.process_time()
        routes += check(text)
        slowest = max(slowest, time.process_time() - at)
    seconds = round(time.perf_counter() - begun, 1)
    return {"transcripts": count, "with_route": routes, "slowest_ms": round(slowest * 1000, 3), "seconds": seconds}


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    print(json.dumps(campaign(*(numbers + [COUNT, 1][len(numbers) :]))))
