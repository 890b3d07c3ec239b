"""Looks at a delivery before anything runs: what could stand for the runner, or lead out of the tree, is refused."""

import posixpath
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from pointsman.proof.snapshot import SUBMODULE, SYMLINK, Snapshot

COMPILED = (".pyc", ".pyo", ".so", ".pyd", ".dylib", ".node", ".class", ".o", ".a", ".rlib", ".syso")
MAX_ADDED = 100_000
TOP_FOLDERS = frozenset({"", "src", "lib", "tests", "test"})
"""Where Python looks for modules while tests run."""
_IMPORT = re.compile(r"^\s*(?:from|import)\s+([A-Za-z_]\w*)", re.MULTILINE)
RUNNER_MODULES = frozenset(
    {
        "pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments", "exceptiongroup", "tomli", "xdist",
        "execnet", "pytest_asyncio", "pytest_timeout", "pytest_cov", "coverage", "hypothesis", "mock", "nose2", "tox",
        "nox", "sitecustomize", "usercustomize", "pexpect", "argcomplete", "trio", "twisted", "anyio", "attr", "attrs", "colorama",
        "typeguard", "pytest_mock", "pytest_xdist",
    }
)  # fmt: skip
INSTALLED = frozenset({"node_modules", ".venv", "venv", "site-packages", "__pypackages__"})
"""Folders that hold installed programs; what is tracked in them would stand for the real ones."""
METADATA = (".egg-info", ".dist-info")
REPORTS = ("target/surefire-reports/", "target/failsafe-reports/", "build/test-results/")
"""Folders of reports that a run writes."""
PROGRAMS = frozenset(
    {
        "pytest",
        "py.test",
        "jest",
        "vitest",
        "mocha",
        "node",
        "go",
        "cargo",
        "npm",
        "npx",
        "mvn",
        "gradle",
        "python",
        "make",
    }
)


@dataclass(frozen=True, slots=True)
class Refused:
    """A path of the delivery that must not be there while it is proven, and why."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


def check_tree(base: Snapshot, delivered: Snapshot, link_targets: dict[str, str]) -> tuple[Refused, ...]:
    """Everything in a delivery that is refused; what the base has already, unchanged, is the user's own."""
    new = [path for path, entry in delivered.entries.items() if base.entries.get(path) != entry]
    added = [path for path in new if path not in base.entries]
    if len(added) > MAX_ADDED:
        return (Refused(f"{len(added)} new files", f"a delivery may add {MAX_ADDED} at most"),)
    refused = [*_links(new, delivered, link_targets), *_compiled(new), *_submodules(new, delivered)]
    return (*refused, *_installed(added), *_shadowing(added, delivered))


def _links(new: Iterable[str], delivered: Snapshot, targets: dict[str, str]) -> list[Refused]:
    found = []
    for path in new:
        if delivered.entries[path].mode != SYMLINK:
            continue
        target = targets.get(path, "/")
        landing = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if target.startswith("/") or landing.startswith("..") or landing.split("/")[0] == ".git":
            found.append(Refused(path, f"the symlink leads out of the tree, to {target[:200]}"))
    return found


def _compiled(new: Iterable[str]) -> list[Refused]:
    return [Refused(path, "compiled code can differ from its source") for path in new if path.endswith(COMPILED)]


def _submodules(new: Iterable[str], delivered: Snapshot) -> list[Refused]:
    return [
        Refused(path, "a repository inside the repository is not proven")
        for path in new
        if delivered.entries[path].mode == SUBMODULE
    ]


def _installed(added: Iterable[str]) -> list[Refused]:
    found = []
    for path in added:
        parts = PurePosixPath(path).parts
        if INSTALLED & set(parts[:-1]):
            found.append(Refused(path, "installed programs cannot be delivered; declare the dependency instead"))
        elif any(part.endswith(METADATA) for part in parts[:-1]) or path.endswith((".pth", ".egg-link")):
            found.append(Refused(path, "metadata of an installed package can load plugins into the test runner"))
        elif any(f"/{place}" in f"/{path}" for place in REPORTS):
            found.append(Refused(path, "reports of tests are written by the tests, not delivered"))
    return found


def _shadowing(added: Iterable[str], delivered: Snapshot) -> list[Refused]:
    found = []
    for path in added:
        name = _module(path)
        folder = (
            posixpath.dirname(path)
            if posixpath.basename(path) != "__init__.py"
            else posixpath.dirname(posixpath.dirname(path))
        )
        is_package = f"{folder}/__init__.py".lstrip("/") in delivered.entries
        if name and not is_package and name in (RUNNER_MODULES | sys.stdlib_module_names):
            found.append(Refused(path, f"it would stand for the module {name} of Python or of the test runner"))
        elif "/" not in path and path in PROGRAMS:
            found.append(Refused(path, f"it would stand for the program {path}"))
    return found


def check_shadows(base: Snapshot, delivered: Snapshot, tests: Iterable[str]) -> tuple[Refused, ...]:
    """New Python modules with the name of one that tests of the base import, and that the base does not hold.

    Those tests ran, so what they import was installed; a file of that name in the tree would come first.
    """
    imported = {name for text in tests for name in _IMPORT.findall(text)}
    own = {part.partition(".")[0] for path in base.entries for part in PurePosixPath(path).parts}
    found = []
    for path in [path for path in delivered.entries if path not in base.entries]:
        name, folder = _module(path), posixpath.dirname(path)
        folder = posixpath.dirname(folder) if posixpath.basename(path) == "__init__.py" else folder
        if name in imported - own and folder in TOP_FOLDERS:
            found.append(Refused(path, f"it would stand for the module {name}, which the tests import from elsewhere"))
    return tuple(found)


def _module(path: str) -> str:
    """The top-level name that a Python file or package takes; empty for other files."""
    location = PurePosixPath(path)
    if location.name == "__init__.py":
        return location.parent.name
    return location.name.partition(".")[0] if location.suffix in {".py", ".so", ".pyd"} else ""
