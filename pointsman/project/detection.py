"""What can be seen in a repository: a proposal for its project file, with a reason for each line."""

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from pointsman.project.ecosystems import Ecosystem, ecosystems, ecosystems_of
from pointsman.project.node_scripts import test_scripts
from pointsman.project.python_dependencies import install_command
from pointsman.project.python_tests import discoveries, is_test, runner_of, version_variable
from pointsman.project.setup_plan import SourceFiles

NO_TEST_SCRIPT = "no test specified"
MAX_NOTE = 400
_MAKE_TARGET = re.compile(r"^(test|check):", re.MULTILINE)
_CHECKS_HEADERS = re.compile(r"apache-rat|<parent>\s*<groupId>org\.apache\b", re.DOTALL)
"""A build that refuses files without a licence's header; projects of Apache inherit it."""
SKIPPED_HEADERS = ("-Drat.skip=true",)
_NODE_TEST = re.compile(r".*\.test\.(js|mjs|cjs)|test-.*\.(js|mjs|cjs)")


@dataclass(frozen=True, slots=True)
class Proposed:
    """A command, and why it is proposed."""

    command: str
    reason: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a project file could say."""

    setup: tuple[Proposed, ...] = ()
    verify: tuple[Proposed, ...] = ()
    notes: tuple[str, ...] = ()
    """What a person should know."""
    env: tuple[tuple[str, str, str], ...] = ()
    """Variables of set-up and proof: name, value, and why."""


@dataclass(slots=True)
class _Draft:
    setup: list[Proposed] = field(default_factory=list)
    verify: list[Proposed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    env: list[tuple[str, str, str]] = field(default_factory=list)
    tag: str = ""


async def propose(base: SourceFiles, is_installed: Callable[[str], bool], tag: str = "") -> Proposal:
    """A proposal for a repository, whose latest tag is given; tools that are missing are replaced or named."""
    draft = _Draft(tag=tag)
    for ecosystem in _usable(_seen(base.names), is_installed, draft):
        await _PROPOSERS[ecosystem.language](draft, base, ecosystem)
    if not draft.verify:
        await _propose_make(draft, base)
    if not draft.verify:
        draft.notes.append("no tests were found: name the command that proves work in [proof] verify")
    draft.notes += await checkout_notes(base)
    return Proposal(tuple(draft.setup), tuple(draft.verify), tuple(draft.notes), tuple(draft.env))


def _seen(names: Collection[str]) -> tuple[Ecosystem, ...]:
    """The ecosystems that files show; Python also by its tests alone."""
    found = ecosystems_of(names)
    if any(one.language == "python" for one in found) or not any(map(is_test, names)):
        return found
    return (*(one for one in ecosystems() if one.name == "pip"), *found)


def _usable(found: Sequence[Ecosystem], is_installed: Callable[[str], bool], draft: _Draft) -> Iterator[Ecosystem]:
    """The ecosystems with a tool that is installed; uv is replaced by pip, which Python brings."""
    for ecosystem in found:
        program = ecosystem.test.split()[0]
        if ecosystem.name == "uv" and not is_installed("uv"):
            draft.notes.append(
                "uv.lock is there and uv is not installed: pip is proposed, which does not read the lock"
            )
            yield next(other for other in ecosystems() if other.name == "pip")
            continue
        if program not in ("python", "uv") and not is_installed(program):
            draft.notes.append(f"{ecosystem.about}: `{program}` is not installed, so set-up and proof will not start")
        yield ecosystem


async def _propose_python(draft: _Draft, base: SourceFiles, ecosystem: Ecosystem) -> None:
    tests = sorted(filter(is_test, base.names))
    runner = await runner_of(base, tests)
    if ecosystem.name == "uv":
        draft.setup += [Proposed(command, "uv.lock pins the dependencies") for command in ecosystem.setup]
        prefix = "uv run --no-sync "
    else:
        command, reason = await install_command(base, needs_pytest=runner == "pytest")
        if command:
            draft.setup += [Proposed(one, "an environment of its own, never yours") for one in ecosystem.setup]
            draft.setup.append(Proposed(command, reason))
        prefix = "python -m " if command else "python3 -m "
    if runner == "pytest":
        draft.verify.append(Proposed(f"{prefix}pytest -q", f"{_count(tests)} for pytest"))
    elif runner == "unittest":
        python = prefix.replace("--no-sync ", "--no-sync python -m ")
        for arguments in discoveries(base.names, tests):
            draft.verify.append(Proposed(f"{python}unittest {arguments}", f"{_count(tests)} for unittest"))
    if draft.setup and (version := await version_variable(base, draft.tag)):
        draft.env.append((*version, "the package's version comes from git, which a fresh tree does not have"))


def _count(tests: Sequence[str]) -> str:
    return "1 file of tests" if len(tests) == 1 else f"{len(tests)} files of tests"


async def _propose_node(draft: _Draft, base: SourceFiles, ecosystem: Ecosystem) -> None:
    manifest = await _json_object(base, "package.json")
    lock = next((sign for sign in ecosystem.signs if sign in base.names and sign != "package.json"), "")
    if manifest.get("dependencies") or manifest.get("devDependencies") or manifest.get("workspaces"):
        if lock:
            draft.setup += [Proposed(command, f"{lock} pins the dependencies") for command in ecosystem.setup]
        else:
            draft.setup.append(
                Proposed("npm install --no-package-lock", "package.json names dependencies, no lock pins them")
            )
    declared = manifest.get("scripts")
    scripts = {str(key): str(value) for key, value in declared.items()} if isinstance(declared, dict) else {}
    if scripts.get("test") and NO_TEST_SCRIPT not in scripts["test"]:
        found = test_scripts(scripts, ecosystem.name)
        reason = f"the test script of package.json: {scripts['test']}"
        draft.verify += [Proposed(command, reason) for command in found.commands]
        draft.notes += [f"of the test script, no part of the proof: {part}" for part in found.left_out if part]
    elif any(_NODE_TEST.fullmatch(PurePosixPath(path).name) for path in base.names):
        draft.verify.append(Proposed("node --test", "files of tests, and no test script in package.json"))


async def _propose_go(draft: _Draft, base: SourceFiles, ecosystem: Ecosystem) -> None:
    if "go.sum" in base.names:
        draft.setup += [Proposed(command, "go.sum pins the modules") for command in ecosystem.setup]
    elif "go.mod" in base.names and b"require" in await base.read("go.mod"):
        draft.setup.append(Proposed("go mod download", "go.mod names modules"))
    if any(path.endswith("_test.go") for path in base.names):
        draft.verify.append(Proposed(ecosystem.test, "files of tests for `go test`"))


async def _propose_rust(draft: _Draft, base: SourceFiles, ecosystem: Ecosystem) -> None:
    if "Cargo.lock" in base.names:
        draft.setup.append(Proposed("cargo fetch --locked", "Cargo.lock pins the crates"))
    else:
        draft.setup += [Proposed(command, "Cargo.toml names the crates") for command in ecosystem.setup]
    draft.verify.append(Proposed(ecosystem.test, "Cargo.toml"))


async def _propose_java(draft: _Draft, base: SourceFiles, ecosystem: Ecosystem) -> None:
    sign = next(sign for sign in ecosystem.signs if sign in base.names)
    wrapper = {"maven": "mvnw", "gradle": "gradlew"}[ecosystem.name]
    program = f"./{wrapper}" if wrapper in base.names else ecosystem.test.split()[0]
    checks_headers = sign == "pom.xml" and _CHECKS_HEADERS.search((await base.read(sign)).decode(errors="replace"))
    options = SKIPPED_HEADERS if checks_headers else ()
    for command in ecosystem.setup:
        draft.setup.append(Proposed(_with_program(command, program, options), f"fetches what {sign} names"))
    if any("src/test/" in path for path in base.names):
        why = "; its check of licence headers would refuse pointsman.toml" if checks_headers else ""
        draft.verify.append(Proposed(_with_program(ecosystem.test, program, options), f"tests below src/test{why}"))


def _with_program(command: str, program: str, options: Sequence[str] = ()) -> str:
    """A command with another program, and with options before its last word."""
    *words, goal = command.split()[1:]
    return " ".join((program, *words, *options, goal))


_PROPOSERS = {
    "python": _propose_python,
    "node": _propose_node,
    "go": _propose_go,
    "rust": _propose_rust,
    "java": _propose_java,
}


async def _propose_make(draft: _Draft, base: SourceFiles) -> None:
    for name in ("Makefile", "makefile", "GNUmakefile"):
        if name in base.names and (found := _MAKE_TARGET.search((await base.read(name)).decode(errors="replace"))):
            draft.verify.append(Proposed(f"make {found[1]}", f"the target `{found[1]}` of {name}"))
            return


async def checkout_notes(base: SourceFiles) -> list[str]:
    """What of a repository is not checked out."""
    notes = []
    if ".gitmodules" in base.names:
        notes.append(
            "submodules are not checked out: clone those that the work needs in [workspace] setup "
            "(`git clone URL FOLDER`; `git submodule` finds nothing in a fresh tree)"
        )
    if await _uses_lfs(base):
        notes.append(
            "files of Git LFS are checked out as pointers, which set-up cannot replace: let [workspace] setup download what the "
            "tests need to paths that git ignores, or leave those tests out of [proof] verify"
        )
    return notes


async def _uses_lfs(base: SourceFiles) -> bool:
    names = [name for name in base.names if PurePosixPath(name).name == ".gitattributes"]
    return any([b"filter=lfs" in await base.read(name) for name in names])


async def _json_object(base: SourceFiles, name: str) -> dict[str, Any]:
    if name not in base.names:
        return {}
    try:
        read = json.loads(await base.read(name))
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def render(proposal: Proposal) -> str:
    """The text of a project file, with the reason of each line."""
    lines = ["# How a fresh tree is set up, and what proves work on it: `pointsman config` shows every key.", ""]
    lines += ["[workspace]", *_array("setup", proposal.setup), *_variables(proposal.env), ""]
    lines += ["[proof]", *_array("verify", proposal.verify)]
    lines += ["", *(f"# {_one_line(note, MAX_NOTE)}" for note in proposal.notes)] if proposal.notes else []
    text = "\n".join(lines) + "\n"
    tomllib.loads(text)
    return text


def _array(key: str, proposed: Collection[Proposed]) -> list[str]:
    if not proposed:
        return [f"{key} = []"]
    items = [f"  {json.dumps(one.command, ensure_ascii=False)},  # {_one_line(one.reason)}" for one in proposed]
    return [f"{key} = [", *items, "]"]


def _variables(env: Collection[tuple[str, str, str]]) -> list[str]:
    """`env`, below a comment that says why."""
    if not env:
        return []
    given = ", ".join(f"{name} = {json.dumps(value)}" for name, value, _ in env)
    return [*(f"# {_one_line(why)}" for _, _, why in env), f"env = {{ {given} }}"]


def _one_line(text: str, length: int = 160) -> str:
    return " ".join(text.split())[:length]
