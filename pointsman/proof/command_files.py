"""Files of the base that a proof command starts: named in the command, in a package's scripts or in a Makefile."""

import json
import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

_INTERPRETERS = re.compile(r"^(?:sh|bash|dash|zsh|node|ruby|perl|php|deno|bun|tsx|ts-node|python[0-9.]*)$")
_SHELL_SIGNS = re.compile(r"[|;&()<>`]+")
MAKE = frozenset({"make", "gmake"})
INSPECTORS = frozenset({"grep", "egrep", "fgrep", "rg", "test", "[", "ls", "stat", "find", "wc", "jq"})
"""Programs that look at files: what they look at is the work, what they look for comes from the command."""
_PATTERN_FILES = frozenset({"-f", "--file", "--from-file"})
"""Options whose value is a file that judges: the patterns of grep, the filter of jq."""


def read_scripts(package_json: bytes | None) -> dict[str, str]:
    """The scripts of a package.json; none when it cannot be read."""
    try:
        document = json.loads(package_json or b"{}")
    except ValueError:
        return {}
    scripts = document.get("scripts") if isinstance(document, dict) else None
    return {str(name): str(script) for name, script in scripts.items()} if isinstance(scripts, dict) else {}


def named_files(
    command: Sequence[str], paths: Iterable[str], scripts: Mapping[str, str], makefile: str
) -> tuple[str, ...]:
    """Files of the base that a command names or starts."""
    known = frozenset(paths)
    words = _judging_words(command)
    for script in scripts.values():
        words += _started(script)
    if command and posixpath.basename(command[0]) in MAKE:
        for line in makefile.splitlines():
            words += _started(line) if line.startswith("\t") else []
    inline = [word for option in command if " " in option for word in _started(option)]
    found = {posixpath.normpath(word.partition("::")[0]) for word in (*words, *inline) if word}
    return tuple(sorted(found & known))


def _judging_words(command: Sequence[str]) -> list[str]:
    """The words of a command that can name a file which judges."""
    if not command or command[0] not in INSPECTORS:
        return list(command)
    given = pairwise(command)
    attached = [word.partition("=")[2] for word in command if word.partition("=")[0] in _PATTERN_FILES]
    return [value for option, value in given if option in _PATTERN_FILES] + attached


def _started(line: str) -> list[str]:
    """Scripts that a line of shell starts: by their own path, or as the first argument of an interpreter."""
    found = []
    for part in _SHELL_SIGNS.split(line.strip().lstrip("@-+")):
        try:
            words = [word for word in shlex.split(part) if "=" not in word]
        except ValueError:
            continue
        if words and _INTERPRETERS.match(posixpath.basename(words[0])):
            found += [word for word in words[1:] if not word.startswith("-")][:1]
        elif words and "/" in words[0]:
            found.append(words[0])
    return found
