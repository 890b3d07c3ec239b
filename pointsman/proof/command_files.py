"""Files of the base that a proof command starts: named in the command, in a package's scripts or in a Makefile."""

import json
import posixpath
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise

_INTERPRETERS = re.compile(r"^(?:sh|bash|dash|zsh|node|ruby|perl|php|deno|bun|tsx|ts-node|python[0-9.]*)$")
_SHELL_SIGNS = re.compile(r"[|;&()<>`]+")
_PREFIX = re.compile(r"^\s*(?:-\s+)?(?:(?:commands\w*|cmds?|run|script)\s*[:=]\s*)?")
_OPTION_VALUE = re.compile(r"^(?:--(?:import|require|loader|experimental-loader|config|setup|file)=|-r=)(.+)$")
_OPTIONS = frozenset({"--import", "--require", "-r", "--loader", "--experimental-loader", "--config", "-c", "--file"})
"""Options of runners and interpreters whose value is a file that they load."""
_LOADING_KEY = re.compile(
    r"""["']?\b(?:setupFiles\w*|globalSetup|globalTeardown|testEnvironment|testRunner|runner|preset|resolver|reporters|"""
    r"""snapshotSerializers|testSequencer|transform|pytest_plugins)["']?\s*[:=]\s*"""
    r"""(\[[^\]]*\]|\{[^}]*\}|\([^)]*\)|["'][^"']*["'])"""
)
_LOADING_OPTION = re.compile(r"(?<![\w-])-p[ =]([A-Za-z_][\w.]*)")
_QUOTED = re.compile(r"""["']([^"']+)["']""")
SHELL_SETTINGS = (
    "Makefile", "makefile", "GNUmakefile", "*.mk", "justfile", "Justfile", "Taskfile.yml", "Taskfile.yaml", "tox.ini",
)  # fmt: skip
"""Names of files whose lines start programs."""
SETTINGS = (
    "package.json", "jest.config.*", "vitest.config.*", "vitest.workspace.*", "vite.config.*", ".mocharc*", "playwright.config.*",
    "pytest.ini", "setup.cfg", "pyproject.toml", "conftest.py", *SHELL_SETTINGS,
)  # fmt: skip
"""Names of files that say what is run, or what the runner loads."""
ENDINGS = (".js", ".ts", ".mjs", ".cjs", ".mts", ".cts", ".jsx", ".tsx", "/index.js", "/index.ts")
WRAPPERS = frozenset({"make", "gmake", "tox", "just", "task"})
"""Programs that run what such files say."""
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


@dataclass(frozen=True, slots=True)
class Settings:
    """The files of a tree, and the texts of those that say what is run."""

    known: frozenset[str]
    texts: dict[str, str]

    @staticmethod
    def paths(entries: Iterable[str]) -> list[str]:
        """Files that can name what judges, by their name."""
        return [path for path in entries if _is_named(path, SETTINGS)]

    @staticmethod
    def is_script(path: str) -> bool:
        """Whether a file can start other files."""
        return path.endswith((".sh", ".bash", ".mk")) or "." not in posixpath.basename(path)

    def started_by(self, path: str) -> set[str]:
        """Files that the lines of a script start."""
        return {name for line in self.texts[path].splitlines() for name in self._resolved(_started(line), path)}

    def loaded(self) -> set[str]:
        """Files that settings load into the test runner by a key (`setupFiles`, `-p`, `pytest_plugins`)."""
        found: set[str] = set()
        for path, text in self.texts.items():
            for match in _LOADING_KEY.finditer(text):
                found |= self._resolved(_QUOTED.findall(match[1]) or match[1].split(), path)
            found |= self._resolved(_LOADING_OPTION.findall(text), path)
        return found

    def _resolved(self, words: Iterable[str], settings: str) -> set[str]:
        """Files of the tree that words mean, seen from the settings or from the top."""
        found: set[str] = set()
        for word in words:
            name = word.replace("<rootDir>/", "").strip("\"'")
            for start in (posixpath.dirname(settings), ""):
                stem = posixpath.normpath(posixpath.join(start, name))
                module = posixpath.join(start, name.replace(".", "/"))
                options = (stem, *(stem + end for end in ENDINGS), f"{module}.py", f"{module}/__init__.py")
                found |= self.known.intersection(options)
        return found


def _is_named(path: str, names: Iterable[str]) -> bool:
    return any(fnmatchcase(posixpath.basename(path), name) for name in names)


def named_files(command: Sequence[str], settings: Settings) -> tuple[str, ...]:
    """Files of the base that a command names or starts, and those that settings load into the runner."""
    words = _judging_words(command)
    for script in read_scripts(settings.texts.get("package.json", "").encode()).values():
        words += _started(script)
    inline = [word for option in command if " " in option for word in _started(option)]
    found = {posixpath.normpath(word.partition("::")[0]) for word in (*words, *inline) if word} & settings.known
    if WRAPPERS & {posixpath.basename(word) for option in command for word in option.split()}:
        for path in [path for path in settings.texts if _is_named(path, SHELL_SETTINGS)]:
            found |= settings.started_by(path)
    return tuple(sorted(found | settings.loaded()))


def _judging_words(command: Sequence[str]) -> list[str]:
    """The words of a command that can name a file which judges."""
    if not command or command[0] not in INSPECTORS:
        return list(command)
    given = pairwise(command)
    attached = [word.partition("=")[2] for word in command if word.partition("=")[0] in _PATTERN_FILES]
    return [value for option, value in given if option in _PATTERN_FILES] + attached


def _started(line: str) -> list[str]:
    """Scripts that a line of shell starts: by their own path, as the first argument of an interpreter, or by an option."""
    found = []
    for part in _SHELL_SIGNS.split(_PREFIX.sub("", line, count=1).strip().lstrip("@-+")):
        try:
            words = [word for word in shlex.split(part) if "=" not in word or word.startswith("-")]
        except ValueError:
            continue
        if not words:
            continue
        if words[0] in {"include", "-include", ".", "source", "exec"}:
            found += words[1:2]
        elif _INTERPRETERS.match(posixpath.basename(words[0])):
            found += [word for word in words[1:] if not word.startswith("-")][:1]
        elif "/" in words[0]:
            found.append(words[0])
        found += [match[1] for word in words if (match := _OPTION_VALUE.match(word))]
        found += [value for option, value in pairwise(words) if option in _OPTIONS]
    return found
