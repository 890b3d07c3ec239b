"""When a notice is sent: quiet hours, digests, escalation; each survives a crash between question and notice."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pointsman._shared.hours import InvalidHours, read_hours
from pointsman.api.orchestrator.v1.run_pb2 import ANSWER_KIND_CLARIFIED
from pointsman.client import Client, Order, Reply
from pointsman.notify.follower import Follower
from pointsman.notify.notice import Notice, digest_of
from pointsman.notify.place import Pending, Place
from pointsman.notify.policy import Policy
from pointsman.testing.planes import control_plane_in
from tests.helpers.eventually import eventually

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
NIGHT = read_hours("22:00-07:00")


@pytest.mark.parametrize(
    ("hours", "at", "end"),
    [
        ("22:00-07:00", "21:59", "21:59"),
        ("22:00-07:00", "22:00", "31:00"),
        ("22:00-07:00", "03:30", "07:00"),
        ("22:00-07:00", "07:00", "07:00"),
        ("12:00-13:30", "12:59", "13:30"),
        ("12:00-13:30", "13:30", "13:30"),
    ],
)
def test_quiet_hours_end_on_the_day_they_end(hours: str, at: str, end: str) -> None:
    midnight = datetime(2026, 11, 18, tzinfo=UTC)
    moment, expected = (midnight + timedelta(hours=int(text[:2]), minutes=int(text[3:])) for text in (at, end))
    assert read_hours(hours).ends_after(moment) == expected
    assert str(read_hours(hours)) == hours


@pytest.mark.parametrize("text", ["", "22-7", "24:00-07:00", "22:00-22:00", "22:00 - 07:00", "7:00-8:00"])
def test_what_is_no_span_of_hours_is_refused(text: str) -> None:
    with pytest.raises(InvalidHours, match="22:00-07:00"):
        read_hours(text)


def test_a_question_is_due_after_the_digest_and_after_quiet_hours() -> None:
    assert Policy().due(NOON) == NOON
    assert Policy(digest_minutes=10).due(NOON) == NOON + timedelta(minutes=10)
    late = NOON.replace(hour=21, minute=55)
    assert Policy(NIGHT, digest_minutes=10).due(late) == NOON.replace(hour=7) + timedelta(days=1)


@dataclass
class Recorded:
    """A receiver that takes everything."""

    notices: list[Notice] = field(default_factory=list)

    async def send(self, notice: Notice) -> None:
        self.notices.append(notice)


class Deaf:
    """A receiver that never takes anything."""

    async def send(self, notice: Notice) -> None:
        await asyncio.Event().wait()


@dataclass
class Clock:
    """A clock that the test moves."""

    moment: datetime = NOON

    def now(self) -> datetime:
        return self.moment


async def asked(client: Client, message: str) -> tuple[str, str]:
    """A run that asks, and its question."""
    run_id = (await client.runs.submit(Order(message, as_action=True))).run.id

    async def question() -> str:
        return (await client.runs.get(run_id)).question.id

    return run_id, await eventually(question)


async def test_questions_of_a_digest_go_out_together_and_answered_ones_not_at_all(tmp_path: Path) -> None:
    path, clock, first = tmp_path / "notify.json", Clock(), Recorded()
    policy = Policy(digest_minutes=10)
    async with control_plane_in(tmp_path / "data") as client:
        runs = [await asked(client, f"fix something {which}") for which in ("first", "second", "third")]
        place = Place(path)
        for number, (run_id, question) in enumerate(runs):
            due_at = policy.due(NOON + timedelta(minutes=number))
            place.add(number + 1, Pending(f"{run_id}.{question}", run_id, due_at))
        answered_run, answered = runs[1]
        await client.runs.answer(answered_run, answered, Reply(ANSWER_KIND_CLARIFIED, "the first", confidence=0.1))
        follower = Follower(client, Place.read(path), first, policy=policy, now=clock.now)
        await follower.send_first()
        assert first.notices == [], "the window is open"
        clock.moment = NOON + timedelta(minutes=10)
        follower = Follower(client, Place.read(path), first, policy=policy, now=clock.now)
        await follower.send_first()
        await follower.send_first()
    (sent,) = first.notices
    assert sent.question.startswith("2 questions wait: ")
    assert runs[0][0] in sent.question
    assert runs[2][0] in sent.question
    assert answered_run not in sent.question
    assert Place.read(path).pending == []


async def test_what_stays_unanswered_goes_to_the_second_receiver_once(tmp_path: Path) -> None:
    path, clock, first, second = tmp_path / "notify.json", Clock(), Recorded(), Recorded()
    policy = Policy(escalate_minutes=30)
    async with control_plane_in(tmp_path / "data") as client:
        run_id, question = await asked(client, "fix something")
        Place(path).add(1, Pending(f"{run_id}.{question}", run_id, policy.due(NOON)))
        for minutes, expected in ((0, (1, 0)), (29, (1, 0)), (30, (1, 1)), (90, (1, 1))):
            clock.moment = NOON + timedelta(minutes=minutes)
            follower = Follower(client, Place.read(path), first, second, policy, now=clock.now)
            await follower.send_first()
            await follower.send_second()
            assert (len(first.notices), len(second.notices)) == expected
    assert first.notices == second.notices
    assert Place.read(path).notified == [f"{run_id}.{question}"]


async def test_a_first_receiver_that_takes_nothing_does_not_keep_the_second_from_being_notified(tmp_path: Path) -> None:
    path, clock, second = tmp_path / "notify.json", Clock(), Recorded()
    policy = Policy(escalate_minutes=30)
    async with control_plane_in(tmp_path / "data") as client:
        run_id, question = await asked(client, "fix something")
        Place(path).add(1, Pending(f"{run_id}.{question}", run_id, policy.due(NOON)))
        for minutes, expected in ((0, 0), (30, 1), (31, 1)):
            clock.moment = NOON + timedelta(minutes=minutes)
            follower = Follower(client, Place.read(path), Deaf(), second, policy, now=clock.now)
            sending = asyncio.create_task(follower.send_first())

            async def is_planned() -> bool:
                return any(one.is_followed for one in Place.read(path).pending)

            await eventually(is_planned)
            await follower.send_second()
            assert len(second.notices) == expected, "after restarts too"
            sending.cancel()
    assert [one.escalated for one in Place.read(path).pending] == [False], "the first notice still waits"


def test_a_digest_of_one_question_is_that_question() -> None:
    notice = Notice("run_1.q1", "run_1", "which?", ("accept",), "http://127.0.0.1/#/runs/run_1")
    assert digest_of([notice]) == notice
    both = digest_of([notice, Notice("run_2.q1", "run_2", "and now?", (), "")])
    assert (both.run_id, both.line) == ("", "2 questions wait: run_1 asks: which?; run_2 asks: and now?")
    assert both.id == digest_of([notice, Notice("run_2.q1", "run_2", "and now?", (), "")]).id
