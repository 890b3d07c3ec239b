"""How a Python project's tests are run, and where its version comes from."""

import re
import shlex
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from pointsman.project.setup_plan import SourceFiles

MAX_READ_TESTS = 20
PYTEST_SETTINGS = ("pytest.ini", "tox.ini", "conftest.py", "tests/conftest.py", "pyproject.toml", "setup.cfg")
VERSIONED_BY_GIT = {
    "setuptools_scm": "SETUPTOOLS_SCM_PRETEND_VERSION",
    "setuptools-scm": "SETUPTOOLS_SCM_PRETEND_VERSION",
    "hatch-vcs": "SETUPTOOLS_SCM_PRETEND_VERSION",
    "poetry-dynamic-versioning": "POETRY_DYNAMIC_VERSIONING_BYPASS",
    "uv-dynamic-versioning": "UV_DYNAMIC_VERSIONING_BYPASS",
}
"""What builds a package with a version from git, and the variable that names the version where git is not there."""
WITHOUT_TAG = "0.0.0"
_TEST_FILE = re.compile(r"(test_[^/]*|[^/]*_tests?|tests?)\.py")
_VERSION = re.compile(r"\d+(\.\d+)*.*")


def is_test(path: str) -> bool:
    """Whether a file is one of tests, by its name."""
    return _TEST_FILE.fullmatch(PurePosixPath(path).name) is not None


async def runner_of(base: SourceFiles, tests: Sequence[str]) -> str:
    """`pytest` or `unittest`, as the settings and the tests show; empty without tests."""
    if not tests:
        return ""
    for name in PYTEST_SETTINGS:
        if name in base.names and (name.endswith(("pytest.ini", "conftest.py")) or b"pytest" in await base.read(name)):
            return "pytest"
    contents = [await base.read(path) for path in tests[:MAX_READ_TESTS]]
    if any(b"pytest" in content for content in contents) or not any(b"unittest" in content for content in contents):
        return "pytest"
    return "unittest"


def discoveries(names: Collection[str], tests: Sequence[str]) -> list[str]:
    """The arguments of `unittest` that find the tests: it enters packages only, from the folder that it is given."""
    roots = sorted({_root(path, names) for path in tests})
    if "" in roots or not roots:
        roots = [""]
    found = []
    for root in roots:
        own = [PurePosixPath(path).name for path in tests if _root(path, names) == root]
        pattern = [] if any(name.startswith("test") for name in own) else ["-p", "*_test*.py"]
        found.append(shlex.join(("discover", "-q", *(["-s", root] if root else []), *pattern)))
    return found


def _root(path: str, names: Collection[str]) -> str:
    """The folder around a file that is no package; empty at the top."""
    folder = PurePosixPath(path).parent
    while str(folder) != "." and f"{folder}/__init__.py" in names:
        folder = folder.parent
    return "" if str(folder) == "." else str(folder)


async def version_variable(base: SourceFiles, tag: str) -> tuple[str, str] | None:
    """A variable and a version for a package whose version comes from git, which a fresh tree does not have."""
    if "PKG-INFO" in base.names:
        return None
    settings = [await base.read(name) for name in ("pyproject.toml", "setup.py", "setup.cfg") if name in base.names]
    for sign, variable in VERSIONED_BY_GIT.items():
        if any(sign.encode() in content for content in settings):
            found = _VERSION.search(tag)
            return variable, found[0] if found else WITHOUT_TAG
    return None
