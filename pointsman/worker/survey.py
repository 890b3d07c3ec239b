"""The survey: what a repository looks like, read from git alone; and the command that runs its tests."""

import json
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Any

from pointsman.api.handoff.v1.handoff_pb2 import Document, ResearchReport
from pointsman.worker.git import Clone, git, text
from pointsman.worker.sdk import Job
from pointsman.worker.workshop import Workshop

CONFIDENCE = 0.8
README_LINES = 40
LISTED_FILES = 200
COMMITS = 20


class Surveyor:
    """The researcher that needs no model."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop

    async def research(self, job: Job) -> ResearchReport:
        """Survey the assignment's repository at its base commit."""
        clone = await self._workshop.clone_for(job)
        commit = job.assignment.repository.base_commit
        files = (await text(clone.path, "ls-tree", "-r", "--name-only", commit)).splitlines()
        log = await text(clone.path, "log", f"-{COMMITS}", "--format=%h %s", commit)
        readme = await _readme(clone, commit, files)
        command = await test_command_of(clone.path, commit)
        facts = _facts(job, files, command)
        summary = _summary(facts, files, log, readme)
        operations = [{"operation": name, "result": "ok"} for name in ("ls-tree", "log", "readme", "test command")]
        return ResearchReport(
            agent_id=job.agent_id,
            slot=job.work.slot.id,
            summary_md=Document(text=summary.encode()[:60_000].decode(errors="ignore")),
            memory_jsonl=Document(text=json.dumps({"agent_id": job.agent_id, **facts}) + "\n"),
            analysis_meta=Document(text=json.dumps(facts)),
            operations=Document(text="".join(json.dumps(item) + "\n" for item in operations)),
            confidence=CONFIDENCE,
        )


def _facts(job: Job, files: list[str], command: tuple[str, ...]) -> dict[str, Any]:
    kinds = Counter(PurePosixPath(path).suffix or "(none)" for path in files)
    return {
        "question": job.work.slot.question,
        "commit": job.assignment.repository.base_commit,
        "files": len(files),
        "kinds": dict(kinds.most_common(10)),
        "test_command": list(command),
    }


def _summary(facts: dict[str, Any], files: list[str], log: str, readme: str) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in facts["kinds"].items())
    tests = " ".join(facts["test_command"]) or "none found"
    listed = "\n".join(files[:LISTED_FILES])
    more = f"\n… and {len(files) - LISTED_FILES} more" if len(files) > LISTED_FILES else ""
    return (
        f"# Survey\n\n{facts['files']} files ({kinds}). Tests: `{tests}`.\n\n"
        f"## Files\n\n```\n{listed}{more}\n```\n\n## Latest commits\n\n```\n{log}\n```\n\n## Read me\n\n{readme}\n"
    )


async def _readme(clone: Clone, commit: str, files: list[str]) -> str:
    name = next((path for path in files if path.lower().startswith("readme")), "")
    if not name:
        return "There is none."
    body = (await git(clone.path, "cat-file", "blob", f"{commit}:{name}")).decode(errors="replace").replace("\0", "")
    return "\n".join(body.splitlines()[:README_LINES])


async def test_command_of(repository: Path, commit: str) -> tuple[str, ...]:
    """The command that runs a repository's tests, judged by the files it has; empty when none can be seen."""
    names = (await text(repository, "ls-tree", "-r", "--name-only", commit)).splitlines()
    for sign, command in _SIGNS:
        if sign in names:
            return command
    tests = [path for path in names if PurePosixPath(path).name.startswith("test_") and path.endswith(".py")]
    if not tests:
        return ()
    first = await git(repository, "cat-file", "blob", f"{commit}:{tests[0]}")
    if b"unittest" in first:
        return ("python3", "-m", "unittest", "discover", "-q")
    return ("python3", "-m", "pytest", "-q")


_SIGNS = (
    ("pytest.ini", ("python3", "-m", "pytest", "-q")),
    ("tox.ini", ("python3", "-m", "pytest", "-q")),
    ("Cargo.toml", ("cargo", "test", "--quiet")),
    ("go.mod", ("go", "test", "./...")),
    ("package.json", ("npm", "test", "--silent")),
)
