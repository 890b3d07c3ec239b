"""How sure a survey is: computed from what it found, not a constant."""

import asyncio
from pathlib import Path

import pytest

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import agent_pb2 as agents
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.run_pb2 import Repository, Usage
from pointsman.worker.git import git, text
from pointsman.worker.sdk import Job
from pointsman.worker.survey import Surveyor, confidence
from pointsman.worker.workspace import Workspace
from tests.unit.worker.repositories import repository

LEXER = {"src/lexer.py": "def tokens(): ...\n", "tests/test_lexer.py": "import pytest\n", "README.md": "# a lexer\n"}


async def survey(
    folder: Path, files: dict[str, str], question: str, slot: str = "q", commits: int = 2
) -> handoff.ResearchReport:
    user = folder / "user"
    await asyncio.to_thread(folder.mkdir)
    await repository(user, files)
    for number in range(1, commits):
        await git(user, "commit", "-q", "--allow-empty", "-m", f"commit {number}")
    commit = await text(user, "rev-parse", "HEAD")
    assignment = assignments.Assignment(id="a", repository=Repository(id="repo", base_commit=commit))
    asked = work.ResearchRequest(slot=work.ResearchSlot(id=slot, question=question))
    lease = agents.Lease(assignment=assignment, epoch=1, research=asked)
    surveyor = Surveyor(Workspace(folder / "surveyor", {"repo": user}))
    return await surveyor.research(Job(None, "box", lease, Usage()))  # type: ignore[arg-type]


async def test_the_words_of_the_question_are_looked_for_and_decide(tmp_path: Path) -> None:
    known = await survey(tmp_path / "a", LEXER, "How does the lexer make tokens?")
    half = await survey(tmp_path / "b", LEXER, "Which tokens does the scheduler make?")
    unknown = await survey(tmp_path / "c", LEXER, "Which database does the scheduler want?")
    assert known.confidence > half.confidence > unknown.confidence
    assert (known.confidence >= 0.6, unknown.confidence < 0.6) == (True, True)
    assert "- lexer: src/lexer.py, tests/test_lexer.py, README.md" in known.summary_md.text
    assert "- scheduler: nowhere" in unknown.summary_md.text


async def test_the_survey_of_a_repository_is_as_sure_as_there_is_something_to_see(tmp_path: Path) -> None:
    question = "What of the repository matters for this task?"
    full = await survey(tmp_path / "a", LEXER, question, "survey")
    bare = await survey(tmp_path / "b", {"log": "start\n"}, question, "survey", commits=1)
    assert (full.confidence, bare.confidence) == (0.9, 0.6)


@pytest.mark.parametrize(("slot", "expected"), [("survey", 0.3), ("survey-2", 0.3), ("q", 0.2)])
def test_an_empty_repository_convinces_nobody(slot: str, expected: float) -> None:
    facts = {"files": 0, "kinds": {}, "test_command": []}
    assert confidence(slot, facts, 0, {"lexer": []}) == expected
