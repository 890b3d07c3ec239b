"""The survey: what a repository looks like, read from git alone; and the command that runs its tests."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from pointsman.api.handoff.v1.handoff_pb2 import Document, ResearchReport
from pointsman.worker.git import Clone, git, text
from pointsman.worker.sdk import Job
from pointsman.worker.workspace import Workspace

README_LINES = 40
LISTED_FILES = 200
COMMITS = 20
MOST_BYTES = 60_000
SURVEY_SLOT = re.compile(r"survey(-[0-9]+)?")
WORD = re.compile(r"\w{3,}")
MOST_WORDS = 12
SHOWN_FILES = 5
COMMON = re.compile(
    "the|and|for|are|how|what|which|who|where|when|why|does|with|from|this|that|into|not|our|you|can|has|have|should|"
    "would|could|there|their|them|its|any|all|use|used|uses|using|code|files?|repository|task|matters"
)
NO_SOURCES = frozenset({"(none)", ".md", ".txt", ".rst", ".lock", ".json", ".toml", ".yaml", ".yml", ".cfg", ".ini"})


class Surveyor:
    """A researcher that uses no model."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def research(self, job: Job) -> ResearchReport:
        """Survey the assignment's repository at its base commit."""
        clone = await self._workspace.clone_for(job)
        commit = job.assignment.repository.base_commit
        files = (await text(clone.path, "ls-tree", "-r", "--name-only", commit)).splitlines()
        log = await text(clone.path, "log", f"-{COMMITS}", "--format=%h %s", commit)
        readme = await _readme(clone, commit, files)
        command = await test_command_of(clone.path, commit)
        facts = _facts(job.work.slot.question, commit, files, command)
        found = await _words_found(clone, commit, files, job.work.slot.question)
        summary = _summary(facts, files, log, readme) + _places(found)
        operations = [
            {"operation": name, "result": "ok"} for name in ("ls-tree", "log", "readme", "test command", "grep")
        ]
        return ResearchReport(
            agent_id=job.agent_id,
            slot=job.work.slot.id,
            summary_md=Document(text=summary.encode()[:MOST_BYTES].decode(errors="ignore")),
            memory_jsonl=Document(text=json.dumps({"agent_id": job.agent_id, **facts}) + "\n"),
            analysis_meta=Document(text=json.dumps(facts)),
            operations=Document(text="".join(json.dumps(item) + "\n" for item in operations)),
            confidence=confidence(job.work.slot.id, facts, len(log.splitlines()), found),
            is_survey=True,
        )


async def survey_of(clone: Clone, commit: str) -> str:
    """What a survey says about a commit, in Markdown, for a planner that has to know where it is."""
    files = (await text(clone.path, "ls-tree", "-r", "--name-only", commit)).splitlines()
    log = await text(clone.path, "log", f"-{COMMITS}", "--format=%h %s", commit)
    facts = _facts("", commit, files, await test_command_of(clone.path, commit))
    summary = _summary(facts, files, log, await _readme(clone, commit, files))
    return summary.encode()[:MOST_BYTES].decode(errors="ignore")


def confidence(slot: str, facts: Mapping[str, Any], commits: int, found: Mapping[str, Sequence[str]]) -> float:
    """How much of what a survey can say there was to find; of a question, above all how many of its words."""
    seen = 10 * any(kind not in NO_SOURCES for kind in facts["kinds"])
    seen += 10 * bool(facts["test_command"]) + 10 * (commits > 1)
    if SURVEY_SLOT.fullmatch(slot):
        return (30 + 30 * bool(facts["files"]) + seen) / 100
    share = sum(1 for places in found.values() if places) / len(found) if found else 0.0
    return round((20 + seen) / 100 + 0.4 * share, 2)


async def _words_found(clone: Clone, commit: str, files: Sequence[str], question: str) -> dict[str, list[str]]:
    """The words of a question, each with the files that have it in their name or in their text."""
    words = dict.fromkeys(word for word in WORD.findall(question.lower()) if not COMMON.fullmatch(word))
    found = {}
    for word in list(words)[:MOST_WORDS]:
        listed = await git(clone.path, "grep", "-l", "-i", "-F", "-e", word, commit, ok=(0, 1))
        holding = listed.decode(errors="replace").replace(f"{commit}:", "").splitlines()
        found[word] = list(dict.fromkeys([path for path in files if word in path.lower()] + holding))
    return found


def _places(found: Mapping[str, Sequence[str]]) -> str:
    lines = [f"- {word}: {', '.join(places[:SHOWN_FILES]) or 'nowhere'}" for word, places in found.items()]
    return "\n## Words of the question\n\n" + "\n".join(lines) + "\n" if lines else ""


def _facts(question: str, commit: str, files: list[str], command: tuple[str, ...]) -> dict[str, Any]:
    kinds = Counter(PurePosixPath(path).suffix or "(none)" for path in files)
    return {
        "question": question,
        "commit": commit,
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
