"""What a Python project without a lock installs for its tests: its own package, extras, groups, requirement files."""

import configparser
import re
import shlex
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pointsman.project.setup_plan import SourceFiles

TEST_NAMES, DEVELOPMENT_NAMES = ("test", "tests", "testing"), ("dev", "development")
"""Extras and groups that hold what tests need; those for development only where there are none for tests."""
TEST_FILES = (
    "requirements-test.txt", "requirements_test.txt", "requirements-tests.txt", "test-requirements.txt",
    "requirements/test.txt", "requirements/tests.txt", "tests/requirements.txt", "test/requirements.txt",
)  # fmt: skip
DEVELOPMENT_FILES = ("requirements-dev.txt", "requirements_dev.txt", "dev-requirements.txt", "requirements/dev.txt")
_PIP = ("python", "-m", "pip", "install", "-q")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


async def install_command(base: SourceFiles, *, needs_pytest: bool) -> tuple[str, str]:
    """The command that installs everything into the tree's own environment, and why; empty when nothing is named."""
    files = [name for name in ("requirements.txt",) if name in base.names]
    files += _preferred(base.names, TEST_FILES, DEVELOPMENT_FILES)
    document = await _pyproject(base)
    is_package = "build-system" in document or "project" in document or "setup.py" in base.names
    extras = await _test_extras(base, document) if is_package else []
    named = list(_group_requirements(document))
    words = [word for name in files for word in ("-r", name)]
    words += ["-e", f".[{','.join(extras)}]" if extras else "."] if is_package else []
    words += named
    known = [
        await base.read(name) for name in (*files, "pyproject.toml", "setup.py", "setup.cfg") if name in base.names
    ]
    if needs_pytest and not any(_names_pytest(word) for word in named) and not (extras and _says_pytest(known)):
        words.append("pytest")
    if not words:
        return "", ""
    parts = [*(["the package itself"] if is_package else []), *files]
    parts += [f"extra {name}" for name in extras] + (["its groups for tests"] if named else [])
    command = shlex.join((f".venv/bin/{_PIP[0]}", *_PIP[1:], *words))
    return command, " + ".join(parts) or "what the tests import"


def _preferred(names: Collection[str], first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Those of the first names that are there, else those of the second."""
    return [name for name in first if name in names] or [name for name in second if name in names]


def _says_pytest(contents: Sequence[bytes]) -> bool:
    return any(b"pytest" in content for content in contents)


def _names_pytest(requirement: str) -> bool:
    found = _NAME.match(requirement)
    return found is not None and found[0].lower() == "pytest"


async def _pyproject(base: SourceFiles) -> dict[str, Any]:
    if "pyproject.toml" not in base.names:
        return {}
    try:
        return tomllib.loads((await base.read("pyproject.toml")).decode(errors="replace"))
    except tomllib.TOMLDecodeError:
        return {}


async def _test_extras(base: SourceFiles, document: Mapping[str, Any]) -> list[str]:
    """The extras of a package that hold what tests need, from pyproject.toml or setup.cfg."""
    project = document.get("project")
    declared = project.get("optional-dependencies", {}) if isinstance(project, dict) else {}
    names = set(declared) if isinstance(declared, dict) else set()
    if "setup.cfg" in base.names:
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string((await base.read("setup.cfg")).decode(errors="replace"))
        except configparser.Error:
            return _preferred(names, TEST_NAMES, DEVELOPMENT_NAMES)
        names |= set(parser["options.extras_require"]) if parser.has_section("options.extras_require") else set()
    return _preferred(names, TEST_NAMES, DEVELOPMENT_NAMES)


def _group_requirements(document: Mapping[str, Any]) -> Iterator[str]:
    """The requirements of dependency groups for tests (PEP 735), with the groups that they include."""
    groups = document.get("dependency-groups")
    if not isinstance(groups, dict):
        return
    seen: set[str] = set()
    waiting = _preferred(groups, TEST_NAMES, DEVELOPMENT_NAMES)
    while waiting:
        name = waiting.pop(0)
        if name in seen or not isinstance(groups.get(name), list):
            continue
        seen.add(name)
        for item in groups[name]:
            if isinstance(item, str):
                yield item
            elif isinstance(item, dict) and isinstance(item.get("include-group"), str):
                waiting.append(item["include-group"])
