"""By what tasks and errors are recognised again, however they are written."""

import hashlib
import re

FINGERPRINT_LETTERS = 50
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+")


def canonical_text(text: str) -> str:
    """Letters and digits of any script in one case, everything else as one blank."""
    return " ".join(_WORD.findall(text.casefold()))


def task_id(text: str) -> str:
    """The canonical task: SHA-256 of the canonical text."""
    return hashlib.sha256(canonical_text(text).encode("utf-8", "replace")).hexdigest()


def fingerprint(error_code: str, error_text: str) -> str:
    """The error's code and its first 50 characters without paths and numbers; empty for an error without either."""
    words = [word for word in error_text.casefold().split() if "/" not in word and "\\" not in word]
    told = " ".join(_NUMBER.sub("", " ".join(words)).split())[:FINGERPRINT_LETTERS]
    return f"{error_code.strip().casefold()}|{told}" if error_code.strip() or told else ""
