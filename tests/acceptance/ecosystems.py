"""`make ecosystems`: real projects of the registries, damaged, and brought to a proven branch as a new user would.

Each is fetched by its own package manager, committed once into a repository and given a small bug that one of its tests
finds. Then the three commands of the README, with a script as the agent, in an empty home.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.acceptance.registries import FETCH, Unavailable

ROOT = Path(__file__).parents[2]
REPAIR = Path(__file__).with_name("repair_agent.py")
COMMAND_SECONDS = 1800.0
HEADINGS = ("project", "ecosystem", "what it tries", "commands", "by hand", "first line s", "init s", "run s", "grade")


@dataclass(frozen=True, slots=True)
class Project:
    """One table of `ecosystems.toml`."""

    name: str
    ecosystem: str
    package: str
    file: str
    right: str
    wrong: str
    task: str
    about: str
    removed: tuple[str, ...] = ()
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Typed:
    """A command that ended: its exit code, what it printed, and when."""

    exit_code: int
    output: str
    seconds: float
    first_line_seconds: float


class User:
    """Somebody with an empty home, who types commands in one repository."""

    def __init__(self, folder: Path, repository: Path) -> None:
        self.repository = repository
        self.commands = 0
        home = folder / "home"
        home.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("POINTSMAN_", "XDG_"))}
        named = {"RUSTUP_HOME": str(Path.home() / ".rustup"), "PYENV_ROOT": str(Path.home() / ".pyenv")}
        toolchains = {name: os.environ.get(name, place) for name, place in named.items() if Path(place).is_dir()}
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        self._environment = {**kept, **toolchains, "HOME": str(home), "PATH": path}

    def types(self, command: str) -> Typed:
        """Runs one line in a shell."""
        self.commands += 1
        begun = time.monotonic()
        process = subprocess.Popen(
            ["sh", "-c", command], cwd=self.repository, env=self._environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        lines, first = [], 0.0
        for line in process.stdout:
            first = first or time.monotonic() - begun
            lines.append(line)
        return Typed(process.wait(COMMAND_SECONDS), "".join(lines), time.monotonic() - begun, first)


def projects() -> dict[str, Project]:
    """Every project of the table."""
    read = tomllib.loads(Path(__file__).with_name("ecosystems.toml").read_text())
    return {name: Project(name, **{**row, "removed": tuple(row.pop("removed", ()))}) for name, row in read.items()}


def committed(project: Project, sources: Path, folder: Path) -> Path:
    """A repository with one commit: the project with its bug."""
    repository = FETCH[project.ecosystem](project.package, sources, folder / project.name)
    for name in project.removed:
        (repository / name).unlink()
    path = repository / project.file
    content = path.read_text()
    assert project.right in content, f"{project.name}: {project.file} has changed"
    path.write_text(content.replace(project.right, project.wrong, 1))
    author = ["-c", "user.name=me", "-c", "user.email=me@localhost"]
    git = ["git", "-C", str(repository)]
    steps = [["init", "-q", "-b", "main"], ["add", "-A", "-f"], [*author, "commit", "-q", "-m", "Import"]]
    for step in [*steps, *([["tag", project.tag]] if project.tag else [])]:
        subprocess.run([*git, *step], check=True, capture_output=True)
    for name in ("name", "email"):
        subprocess.run([*git, "config", f"user.{name}", f"me@{name}"], check=True)
    return repository


def play(project: Project, sources: Path, folder: Path) -> dict[str, Any]:
    """The three commands on one project; a row that says how it went."""
    user = User(folder, committed(project, sources, folder))
    change = {"file": project.file, "wrong": project.wrong, "right": project.right}
    (folder / "change.json").write_text(json.dumps(change))
    agent = shlex.quote(shlex.join((sys.executable, str(REPAIR), str(folder / "change.json"))))
    init = user.types("pointsman init --yes")
    saved = user.types("git add pointsman.toml && git commit -q -m 'Say how work is proven'")
    run = user.types(f"pointsman run {shlex.quote(project.task)} --command {agent}")
    grade = next((word for word in ("PROVEN", "UNBROKEN", "ON WORD") if f", {word}\n" in run.output), "none")
    row = {
        "project": f"{project.name} {project.package}",
        "ecosystem": project.ecosystem,
        "what it tries": project.about,
        "commands": user.commands,
        "by hand": "nothing",
        "first line s": round(max(init.first_line_seconds, run.first_line_seconds), 1),
        "init s": round(init.seconds, 1),
        "run s": round(run.seconds, 1),
        "grade": grade,
    }
    is_proven = (init.exit_code, saved.exit_code, run.exit_code, grade) == (0, 0, 0, "PROVEN")
    if not is_proven:
        row["grade"] = f"{grade} (exit {init.exit_code}, {run.exit_code})"
    if not is_proven or "VERBOSE" in os.environ:
        print(f"\n$ pointsman init --yes\n{init.output}\n$ pointsman run\n{run.output}", file=sys.stderr)
    return row


def main(sources: str, *names: str) -> None:
    """Play the projects that are named, or all; end with 1 if one that can be had is not proven."""
    found, failed = projects(), []
    print(" | ".join(HEADINGS))
    for name in names or tuple(found):
        with tempfile.TemporaryDirectory(prefix="ecosystems-") as folder:
            try:
                row = play(found[name], Path(sources).resolve(), Path(folder).resolve())
            except Unavailable as reason:
                print(f"{name} | SKIPPED: {reason}", flush=True)
                continue
        if row["grade"] != "PROVEN":
            failed.append(name)
        print(" | ".join(str(row[heading]) for heading in HEADINGS), flush=True)
    if failed:
        sys.exit(f"not proven: {', '.join(failed)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
