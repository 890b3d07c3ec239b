"""What commands say and understand, without a control plane."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.agent_pb2 import AGENT_STATE_WORKING, Agent
from pointsman.api.orchestrator.v1.machine_pb2 import GetMachineResponse, MachineTransition
from pointsman.api.orchestrator.v1.run_pb2 import (
    ANSWER_KIND_ACCEPT,
    ANSWER_KIND_CLARIFIED,
    ANSWER_KIND_RAISE,
    ANSWER_KIND_REJECT,
    RUN_STATE_BOOT,
    RUN_STATE_CANCELLED,
    RUN_STATE_COMPLETE,
    RUN_STATE_IDLE_PROBE_BD,
    RUN_STATE_INTAKE,
    Question,
    Run,
    TaskProgress,
    Usage,
)
from pointsman.cli.commands.agents import agent_line
from pointsman.cli.commands.audit import findings
from pointsman.cli.options.run_options import parse_budget
from pointsman.cli.options.usage import split_command
from pointsman.cli.render.run_progress import status, working_lines
from pointsman.cli.render.transition_lines import event_lines
from pointsman.cli.session.follow import exit_code, program, question_lines
from pointsman.cli.session.usable_repository import find_repository
from pointsman.cli.session.workers import profile_for
from pointsman.services.chassis.core.codec import DIGEST_COLUMNS, chained_digest
from pointsman.services.orchestrator.domain.event_types import EVENTS
from pointsman.services.orchestrator.wire.encode.transitions import run_event
from tests.unit.worker.repositories import repository

MACHINE = GetMachineResponse(
    version=1,
    terminal=[RUN_STATE_COMPLETE],
    transitions=[MachineTransition(source=RUN_STATE_BOOT, event="auto", target=RUN_STATE_IDLE_PROBE_BD)],
)


def row(seq: int, event: str, source: str, target: str, **payload: Any) -> Transition:
    made = Transition(entity_id="r", kind="run", seq=seq, event=event, from_state=source, to_state=target)
    made.payload_json = json.dumps(payload)
    if event in EVENTS:
        made.run.CopyFrom(run_event(event, made.payload_json, whole=False))
    made.at.FromMicroseconds(seq * 1_000_000)
    return made


def journal() -> list[Transition]:
    rows = [row(1, "submitted", "", "BOOT"), row(2, "auto", "BOOT", "IDLE_PROBE_BD")]
    previous = ""
    for one in rows:
        names = {"source": "from_state", "target": "to_state", "payload": "payload_json"}
        special: dict[str, str | int] = {"project": "local", "machine_version": 1, "at_us": one.seq * 1_000_000}
        fields = [special.get(name, getattr(one, names.get(name, name), "")) for name in DIGEST_COLUMNS]
        previous = one.digest = chained_digest(previous, tuple(fields))
    return rows


def test_a_whole_journal_has_no_findings() -> None:
    assert findings(journal(), MACHINE, "local") == []


def test_a_changed_row_is_found_by_its_digest() -> None:
    rows = journal()
    rows[0].payload_json = '{"forged": true}'
    assert findings(rows, MACHINE, "local") == ["seq 1 is not what its digest says"]


def test_a_missing_row_is_found_by_number_state_and_digest() -> None:
    assert len(findings(journal()[1:], MACHINE, "local")) == 3


def test_a_move_outside_the_table_is_found() -> None:
    rows = journal()
    rows[1].event = "pass"
    assert "seq 2: BOOT pass IDLE_PROBE_BD is not in the table" in findings(rows, MACHINE, "local")


def test_a_budget_is_read_field_by_field() -> None:
    budget = parse_budget("assignments=5,minutes=2,tokens=1000")
    assert budget is not None
    assert (budget.assignments, budget.wall_clock.seconds, budget.tokens) == (5, 120, 1000)
    assert parse_budget("") is None


@pytest.mark.parametrize("given", ["assignments", "assignments=x", "gold=5", "tokens=-1"])
def test_a_budget_that_means_nothing_is_a_usage_error(given: str) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_budget(given)
    assert ended.value.code == 2


def test_the_live_view_says_who_works_on_which_stage_and_what_meets_at_a_barrier() -> None:
    held: dict[str, Any] = {
        "state": assignments.ASSIGNMENT_STATE_LEASED,
        "attempt": 1,
        "purpose": assignments.PURPOSE_STAGE,
    }
    live = [
        assignments.Assignment(task_id="T1", stage="REVIEW", agent_id="box-reviewer", **held),
        assignments.Assignment(task_id="T1", stage="TEST", state=assignments.ASSIGNMENT_STATE_OPEN),
        assignments.Assignment(purpose=assignments.PURPOSE_VERIFY, state=assignments.ASSIGNMENT_STATE_OPEN),
    ]
    assert list(working_lines(live)) == [
        "  T1 REVIEW: box-reviewer works on it (attempt 1), barrier of 2",
        "  T1 TEST: waits for an agent, barrier of 2",
        "  verify: waits for an agent",
    ]


def test_a_proof_is_an_argument_list_without_a_shell() -> None:
    assert split_command("pytest -q 'a b'", "--verify") == ("pytest", "-q", "a b")


@pytest.mark.parametrize("command", ["", "it's"])
def test_a_proof_that_is_no_command_line_is_refused(command: str) -> None:
    with pytest.raises(SystemExit) as ended:
        split_command(command, "--verify")
    assert ended.value.code == 2


def test_an_unknown_agent_is_a_usage_error_that_names_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        profile_for("nobody", "")
    assert "claude" in capsys.readouterr().err


@pytest.mark.parametrize(("state", "code"), [(RUN_STATE_COMPLETE, 0), (RUN_STATE_CANCELLED, 1), (RUN_STATE_INTAKE, 4)])
def test_exit_codes_say_done_failed_or_waiting(state: Any, code: int) -> None:
    assert exit_code(Run(state=state)) == code


def test_a_question_is_shown_with_the_commands_that_answer_it() -> None:
    run = Run(
        id="r1",
        question=Question(text="Is it accepted?", takes=[ANSWER_KIND_ACCEPT, ANSWER_KIND_REJECT], subjects=["T1"]),
    )
    lines = list(question_lines(run))
    assert f"  {program()} answer r1 accept" in lines
    assert f"  {program()} answer r1 reject" in lines


def test_a_rejection_is_told_with_its_reason() -> None:
    judged = row(3, "task_judged", "A", "A", task_id="T1", judge="verifier", accepted=False, reason="no\n---\nreally")
    assert [line.text for line in event_lines(judged)] == ["  T1 rejected by the verifier: no really"]


def test_most_facts_are_not_worth_telling() -> None:
    assert list(event_lines(row(3, "peer_called", "A", "A", call_id="c1"))) == []


def test_the_program_is_called_as_it_can_be_called_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / ".venv" / "bin"
    place.mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(place / "python"))
    assert program() == "pointsman"
    (place / "pointsman").touch(mode=0o755)
    assert program() == str(place / "pointsman")
    monkeypatch.chdir(tmp_path)
    assert program() == ".venv/bin/pointsman"
    monkeypatch.setenv("PATH", str(place))
    assert program() == "pointsman"


async def test_a_folder_of_a_repository_stands_for_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "user"
    await repository(folder, {"a/b": "x\n"})
    assert await find_repository(folder / "a") == folder
    monkeypatch.chdir(folder / "a")
    assert await find_repository(None) == folder
    monkeypatch.chdir(tmp_path)
    assert await find_repository(None) is None


def test_an_answer_that_needs_words_or_a_budget_is_shown_with_them() -> None:
    unclear = Run(id="r1", question=Question(takes=[ANSWER_KIND_CLARIFIED]))
    assert f'  {program()} answer r1 clarified --text "…"' in question_lines(unclear)
    over = Run(id="r1", question=Question(takes=[ANSWER_KIND_RAISE], subjects=["wall_clock"]))
    over.budget.wall_clock.FromSeconds(600)
    assert f"  {program()} answer r1 raise --budget minutes=20" in question_lines(over)
    assert f"  {program()} cancel r1" in question_lines(over)


def test_what_was_spent_is_told_by_task_and_by_agent() -> None:
    usage = Usage(assignments=2, tokens=1200, cost_micros=340_000)
    run = Run(tasks=[TaskProgress(task_id="T1", status="accepted", attempt=1, name="greet", usage=usage)])
    assert "  T1 accepted (attempt 1) greet  [1200 tokens, cost 0.34]" in status(run).splitlines()
    agent = Agent(id="box-coder", capabilities=[assignments.CAPABILITY_CODE], state=AGENT_STATE_WORKING, usage=usage)
    assert agent_line(agent).split()[:3] == ["box-coder", "working", "code"]
    assert agent_line(agent).endswith("2 assignments  [1200 tokens, cost 0.34]")
    agent.pause_reason = "used up (reported by coder/box-2)"
    agent.paused_until.FromSeconds(86400)
    assert agent_line(agent).endswith("  paused until 1970-01-02 00:00:00 UTC: used up (reported by coder/box-2)")


def test_a_pause_and_an_attempt_that_came_to_nothing_are_told_as_what_they_are() -> None:
    paused = row(1, "resource_busy", "SCHEDULE", "QUEUE", reason="the workflow is paused: task 'T1' is done")
    ended = row(2, "claims_evidence_arrived", "CODER_EXEC", "REVIEW_ACCEPT", reason="T1 was aborted: no agent finished")
    lines = [line.text.split(maxsplit=1) for line in (*event_lines(paused), *event_lines(ended))]
    assert lines == [
        ["QUEUE", "waits: the workflow is paused: task 'T1' is done"],
        ["REVIEW_ACCEPT", "attempts ended: T1 was aborted: no agent finished"],
    ]
