"""What of a package's test script runs tests: the rest (lint, types, audits) proves no behaviour and may need the network."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

RUNNERS = frozenset({"jest", "vitest", "mocha", "tape", "tap", "ava", "borp", "uvu", "jasmine", "qunit"})
STARTERS = frozenset({"npx", "c8", "nyc", "cross-env", "env", "dotenv"})
"""Programs whose arguments name the program that is started."""
MANAGERS = frozenset({"npm", "pnpm", "yarn"})
RUN_WORDS = frozenset({"run", "run-script", "-s", "--silent"})
LOOKS_ONLY = frozenset({"eslint", "standard", "xo", "prettier", "jshint", "tslint", "biome", "aud", "tsd", "tstyche"})
"""Programs that look at sources or at a registry, and build nothing that tests need."""
_SHELL = re.compile(r"[|;<>`$()\\]")


@dataclass(slots=True)
class TestScripts:
    """Commands that run tests, and the parts of the test script that do not."""

    commands: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    __test__ = False


def test_scripts(scripts: Mapping[str, str], manager: str) -> TestScripts:
    """The commands that run the tests of a package; the test script itself where that is all it does, or unreadable."""
    found = TestScripts()
    for name, words, is_alone in _parts("test", scripts, ()):
        if not words or _runner(words) is None:
            found.left_out.append(shlex.join(words))
        elif not is_alone or _has_other_hooks(name, scripts):
            found.commands.append(shlex.join(words if words[0] in {"node", "npx"} else ("npx", *words)))
        else:
            found.commands.append(f"{manager} test" if name == "test" else shlex.join((manager, "run", name)))
    if not found.commands:
        return TestScripts([f"{manager} test"])
    return found


def _parts(name: str, scripts: Mapping[str, str], above: tuple[str, ...]) -> Iterator[tuple[str, list[str], bool]]:
    """The commands of a script and of the scripts that it runs: where each stands, its words, whether it is alone there."""
    script = scripts.get(name, "")
    parts = [part.strip() for part in script.split("&&")]
    for part in parts:
        words = _words(part)
        inner = _script_run_by(words, scripts)
        if inner and inner not in above and inner != name:
            yield from _parts(inner, scripts, (*above, name))
        else:
            yield name, words, len(parts) == 1


def _words(part: str) -> list[str]:
    """The words of a command without a shell's signs; none where it needs one."""
    if _SHELL.search(part):
        return []
    try:
        return shlex.split(part)
    except ValueError:
        return []


def _script_run_by(words: list[str], scripts: Mapping[str, str]) -> str:
    """The script that a command runs by the package manager, also behind a program that measures coverage."""
    for place, word in enumerate(words):
        if word in MANAGERS:
            named = [one for one in words[place + 1 :] if one not in RUN_WORDS]
            return named[0] if named and named[0] in scripts else ""
        if place == 0 and word not in STARTERS:
            return ""
    return ""


def _runner(words: list[str]) -> str | None:
    """The runner of tests that a command starts."""
    for place, word in enumerate(words):
        if word in RUNNERS or (word == "node" and "--test" in words[place:]):
            return word
        if place == 0 and word not in STARTERS and "=" not in word:
            return None
    return None


def _has_other_hooks(name: str, scripts: Mapping[str, str]) -> bool:
    """Whether something runs before or after a script that only looks, and nothing that could build."""
    hooks = [words for hook in (f"pre{name}", f"post{name}") for _, words, _ in _parts(hook, scripts, ())]
    named = [words for words in hooks if words]
    return bool(named) and all(LOOKS_ONLY.intersection(words) for words in named)
