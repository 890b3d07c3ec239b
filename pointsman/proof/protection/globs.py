"""Globs over paths from the top of a repository: `*` stays in a folder, `**` crosses folders."""

import re
from collections.abc import Iterable
from functools import cache


@cache
def _pattern(glob: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|/\*\*$|\*\*|\*|\?)", glob)
    wild = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(wild.get(part, re.escape(part)) for part in parts))


def matches(path: str, glob: str) -> bool:
    """Whether a path has the form of a glob; a glob that ends in `/` stands for everything below."""
    return bool(_pattern(f"{glob}**" if glob.endswith("/") else glob).fullmatch(path))


def first_match(path: str, globs: Iterable[str]) -> str:
    """The first glob that a path has the form of; empty when there is none."""
    return next((glob for glob in globs if matches(path, glob)), "")
