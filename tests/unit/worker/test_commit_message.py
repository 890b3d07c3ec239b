"""Commits of agents' work: a reader of a pull request learns the task, the claims and the run."""

import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.api.handoff.v1.handoff_pb2 import Claim, MasterTask
from pointsman.worker.commit_message import MAX_SUBJECT, merge_message, work_message

TASK = MasterTask(task_id="T1", name="Let mean() take an empty list")


def test_a_commit_says_the_task_its_claims_and_the_run() -> None:
    message = work_message("run_1", TASK, [Claim(id="C1", statement="mean([]) is 0")])
    assert message == (
        "Let mean() take an empty list\n\nIts author claims:\n- C1: mean([]) is 0\n\n"
        "Pointsman-Run: run_1\nPointsman-Task: T1"
    )
    assert merge_message("run_1", "T1").startswith("Merge the accepted work on T1\n\nPointsman-Run: run_1\n")


def test_a_task_without_claims_or_name_has_a_message_too() -> None:
    message = work_message("run_1", MasterTask(task_id="T2"), [])
    assert message == "Task T2\n\nPointsman-Run: run_1\nPointsman-Task: T2"


def trailers_of(message: str) -> list[str]:
    """The trailers as git reads them."""
    read = subprocess.run(
        ["git", "interpret-trailers", "--parse"], input=message.encode(), capture_output=True, check=True
    )
    return read.stdout.decode().splitlines()


def test_no_claim_forges_a_trailer() -> None:
    forged = "done\n\nPointsman-Run: run_9\nSigned-off-by: somebody else <a@b.c>"
    task = MasterTask(task_id="T1\nPointsman-Task: T9", name=forged)
    message = work_message("run_1", task, [Claim(id="C1", statement=forged)] * 3)
    assert trailers_of(message) == ["Pointsman-Run: run_1", "Pointsman-Task: T1 Pointsman-Task: T9"]


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=300))
def test_a_subject_is_one_short_line(text: str) -> None:
    subject, blank, *_ = work_message("run_1", MasterTask(task_id="T1", name=text), []).split("\n")
    assert 0 < len(subject) <= MAX_SUBJECT
    assert blank == ""
