"""A principal has no more request ids remembered than it may, on both databases; nobody else feels it."""

from datetime import timedelta

import pytest

from pointsman.services.chassis.core.caller import Caller, Role, engine_caller
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.runtime.housekeeping import delete_old_answers
from tests.helpers.clock import FakeClock
from tests.helpers.counter import Add, Answer
from tests.helpers.counters import in_one_batch, opened, rows_of, state_of

LIMIT = 3


@pytest.fixture(autouse=True)
def _limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_REQUESTS_MAX_PER_PRINCIPAL", str(LIMIT))


def asks(principal: str, request_id: str, project: str = "local") -> Caller:
    return Caller(principal, project, frozenset({Role.OPERATOR}), request_id=request_id, fingerprint="same")


async def test_one_past_the_limit_is_refused_and_changes_nothing_and_others_go_on(database_url: str) -> None:
    async with opened(database_url) as counters:
        for number in range(LIMIT):
            await counters.ledger.submit(asks("alice", f"a{number}"), Add("c1", 1))
        for _ in range(2):
            with pytest.raises(Refusal) as caught:
                await counters.ledger.submit(asks("alice", "one-more"), Add("c1", 1))
            assert (caught.value.reason, caught.value.metadata) == (Reason.OVERLOADED, {"limit": str(LIMIT)})
            assert caught.value.retry_after_seconds
            assert "POINTSMAN_REQUESTS_MAX_PER_PRINCIPAL" in caught.value.message
        assert (await state_of(counters, "c1")).value == LIMIT
        assert await counters.ledger.submit(asks("alice", "a0"), Add("c1", 1)) == Answer(1, 1), (
            "a repetition is no more"
        )
        assert (await counters.ledger.submit(asks("bob", "b0"), Add("c1", 1))).value == LIMIT + 1
        assert (await counters.ledger.submit(asks("alice", "a0", "theirs"), Add("c2", 1))).value == 1
        assert len(await rows_of(counters, "idempotency")) == LIMIT + 2


async def test_requests_of_one_batch_share_the_limit(database_url: str) -> None:
    async with opened(database_url) as counters:
        sent = [counters.ledger.submit(asks("alice", f"a{number}"), Add("c1", 1)) for number in range(LIMIT + 2)]
        outcomes = await in_one_batch(counters.store, sent)
        assert [isinstance(outcome, Refusal) for outcome in outcomes] == [False] * LIMIT + [True] * 2


async def test_what_another_process_remembers_counts_and_what_is_forgotten_does_not(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters:
        for number in range(LIMIT):
            await counters.ledger.submit(asks("alice", f"a{number}"), Add("c1", 1))
    async with opened(database_url, clock) as counters:
        with pytest.raises(Refusal):
            await counters.ledger.submit(asks("alice", "late"), Add("c1", 1))
        clock.advance(seconds=timedelta(days=8).total_seconds())
        await delete_old_answers(counters.store)
        assert (await counters.ledger.submit(asks("alice", "late"), Add("c1", 1))).value == LIMIT + 1


async def test_services_and_the_engine_itself_are_not_limited(database_url: str) -> None:
    async with opened(database_url) as counters:
        for number in range(LIMIT + 1):
            await counters.ledger.submit(engine_caller("local", "", f"e{number}"), Add("c1", 1))
        assert (await state_of(counters, "c1")).value == LIMIT + 1
