"""What each coder of the campaign writes, and when; plain Python, for the sandbox has nothing of ours."""

import hashlib

LINES = 400
SHARED = "".join(f"line {number}\n" for number in range(LINES))
SLOT = 5
"""Every piece has lines of its own, far enough from the next one's for git."""


def chance(seed: str, number: int, sides: int) -> int:
    """A die that falls the same for everybody who throws it."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{number}".encode()).digest()[:4]) % sides


def overlaps(number: int) -> bool:
    """Three in ten change the first line of one file."""
    return chance("overlap", number, 10) < 3


def written(number: int, before: str, *, linked: bool) -> tuple[str, str]:
    """The file of a piece and its content; a linked run brings both sides' intentions together, in lines of its own."""
    if not overlaps(number):
        return f"own/{number}.txt", f"said by {number}\n"
    line = f"line {number * SLOT}\n" if linked else "line 0\n"
    return "shared.txt", before.replace(line, f"said by {number}\n", 1)
