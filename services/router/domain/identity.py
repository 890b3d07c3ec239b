"""Stable identities of tasks and errors, independent of spelling, case and numbers."""

import hashlib
import re

FINGERPRINT_LETTERS = 50
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+")


def canonical_text(text: str) -> str:
    """Case-folded letters and digits of any script, everything else replaced by single blanks."""
    return " ".join(_WORD.findall(text.casefold()))


def task_id(text: str) -> str:
    """The id of a task: SHA-256 of the canonical text."""
    return hashlib.sha256(canonical_text(text).encode("utf-8", "replace")).hexdigest()


def fingerprint(error_code: str, error_text: str) -> str:
    """The error's code and the first 50 characters of its text without paths and numbers; empty for an error without either."""
    words = [word for word in error_text.casefold().split() if "/" not in word and "\\" not in word]
    normalized = " ".join(_NUMBER.sub("", " ".join(words)).split())[:FINGERPRINT_LETTERS]
    return f"{error_code.strip().casefold()}|{normalized}" if error_code.strip() or normalized else ""
