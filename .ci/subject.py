"""Check that a commit's subject has at most 72 characters, and an empty line after it: `subject.py <message file>`."""

import sys
from pathlib import Path

MAX_SUBJECT = 72


def problem(message: str) -> str | None:
    """What is wrong with a commit message."""
    subject, *body = [line for line in message.splitlines() if not line.startswith("#")] or [""]
    if not subject.strip():
        return "the first line of a commit message is its subject; it is empty"
    if len(subject) > MAX_SUBJECT:
        return f"the subject has {len(subject)} characters; put the why into the body and keep it within {MAX_SUBJECT}"
    if body and body[0].strip():
        return "an empty line belongs between subject and body"
    return None


if __name__ == "__main__":
    sys.exit(problem(Path(sys.argv[1]).read_text()))
