"""Each request changes state once: the same one asked again has its first answer, another one under its id is refused."""

import asyncio
from dataclasses import replace
from datetime import datetime

import msgspec
import pytest

from pointsman.services.chassis.core.caller import Caller, Role, engine_caller
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.core.machine import Decision
from pointsman.services.chassis.engine.ledger import Ledger
from pointsman.services.chassis.engine.retention import forget_run
from tests.helpers.counter import CEILING, MACHINE, Add, Answer, Counter
from tests.helpers.counters import a_caller, assert_sound, in_one_batch, journal_of, opened, rows_of, state_of


async def test_the_same_request_again_has_its_first_answer(database_url: str) -> None:
    async with opened(database_url) as counters:
        first = await counters.ledger.submit(a_caller("r1"), Add("c1", 5))
        await counters.ledger.submit(a_caller("r2"), Add("c1", 1))
        again = await counters.ledger.submit(a_caller("r1"), Add("c1", 5))
        assert again == first == Answer(5, 1)
        assert len(await journal_of(counters, "c1")) == 2


async def test_the_first_answer_outlives_the_process(database_url: str) -> None:
    async with opened(database_url) as counters:
        first = await counters.ledger.submit(a_caller("r1"), Add("c1", 5))
    async with opened(database_url) as counters:
        assert await counters.ledger.submit(a_caller("r1"), Add("c1", 5)) == first
        await assert_sound(counters)


async def test_another_body_under_a_used_request_id_is_refused(database_url: str) -> None:
    async with opened(database_url) as counters:
        await counters.ledger.submit(a_caller("r1", fingerprint="one body"), Add("c1", 5))
        with pytest.raises(Refusal) as refused:
            await counters.ledger.submit(a_caller("r1", fingerprint="another"), Add("c1", 6))
        assert (refused.value.reason, refused.value.metadata) == (Reason.REQUEST_ID_REUSED, {"request_id": "r1"})
        assert (await state_of(counters, "c1")).value == 5


async def test_both_hold_within_one_batch(database_url: str) -> None:
    async with opened(database_url) as counters:
        bodies = ("one body", "one body", "another")
        outcomes = await in_one_batch(
            counters.store, [counters.ledger.submit(a_caller("r1", fingerprint=body), Add("c1", 5)) for body in bodies]
        )
        assert outcomes[:2] == [Answer(5, 1), Answer(5, 1)]
        assert isinstance(outcomes[2], Refusal)
        assert outcomes[2].reason is Reason.REQUEST_ID_REUSED
        assert len(await journal_of(counters, "c1")) == 1


async def test_another_project_may_use_the_same_request_id(database_url: str) -> None:
    async with opened(database_url) as counters:
        await counters.ledger.submit(a_caller("r1", fingerprint="ours"), Add("c1", 5))
        theirs = await counters.ledger.submit(a_caller("r1", "theirs", "theirs"), Add("c2", 6))
        assert theirs == Answer(6, 1)
        both = [a_caller("r2", project, project) for project in ("local", "theirs")]
        commands = [
            counters.ledger.submit(caller, Add(name, 1)) for caller, name in zip(both, ("c1", "c2"), strict=True)
        ]
        assert await in_one_batch(counters.store, commands) == [Answer(6, 6), Answer(7, 7)]


def asks(principal: str, request_id: str, role: Role = Role.OPERATOR) -> Caller:
    """Somebody with a request of their own."""
    return Caller(principal, "local", frozenset({role}), request_id=request_id, fingerprint="same")


@pytest.mark.parametrize("principals", [("alice", "mallory"), ("coder/box-1", "coder/box-2"), ("coder", "coder/coder")])
async def test_a_request_id_is_nobody_elses_whoever_used_it_first(
    database_url: str, principals: tuple[str, str]
) -> None:
    async with opened(database_url) as counters:
        apart = [await counters.ledger.submit(asks(name, "r1"), Add("c1", 1)) for name in principals]
        assert apart == [Answer(1, 1), Answer(2, 2)], "neither is refused, and neither reads the other's answer"
        together = [counters.ledger.submit(asks(name, "r2"), Add("c1", 1)) for name in principals]
        assert await in_one_batch(counters.store, together) == [Answer(3, 3), Answer(4, 4)]
    async with opened(database_url) as counters:
        again = [
            await counters.ledger.submit(asks(name, request_id), Add("c1", 1))
            for request_id in ("r1", "r2")
            for name in principals
        ]
        assert again == [Answer(1, 1), Answer(2, 2), Answer(3, 3), Answer(4, 4)], "each has its own answer"
        await assert_sound(counters)


async def test_a_principal_that_comes_back_with_other_rights_is_still_answered_once(database_url: str) -> None:
    async with opened(database_url) as counters:
        first = await counters.ledger.submit(asks("alice", "r1"), Add("c1", 1))
        assert await counters.ledger.submit(asks("alice", "r1", Role.ADMIN), Add("c1", 1)) == first


async def test_what_is_no_command_has_an_answer_for_each_principal_too(database_url: str) -> None:
    async with opened(database_url) as counters:
        for name, run_id in (("alice", "run_1"), ("mallory", "run_2"), ("alice", "run_1")):
            caller = replace(asks(name, "r1"), fingerprint=run_id)
            assert await forget_run(counters.store, caller, run_id, lambda row: True) == 0
        assert len(await rows_of(counters, "idempotency")) == 2


async def test_a_refused_request_may_be_sent_again(database_url: str) -> None:
    async with opened(database_url) as counters:
        await counters.ledger.submit(a_caller(), Add("c1", CEILING))
        with pytest.raises(Refusal):
            await counters.ledger.submit(a_caller("r1"), Add("c1", 1))
        await counters.ledger.submit(a_caller(), Add("c1", -1))
        assert (await counters.ledger.submit(a_caller("r1"), Add("c1", 1))).value == CEILING


async def test_one_request_sent_64_times_at_once_counts_once(database_url: str) -> None:
    async with opened(database_url) as one:
        sent = [one.ledger.submit(a_caller("r1"), Add("c1", 5)) for _ in range(64)]
        assert set(await asyncio.gather(*sent)) == {Answer(5, 1)}
        assert len(await rows_of(one, "idempotency")) == 1


async def test_a_client_cannot_take_the_request_id_of_an_effect(database_url: str) -> None:
    async with opened(database_url) as counters:
        await counters.ledger.submit(a_caller("c1:1:0", fingerprint="a guess"), Add("c1", 1))
        answer = await counters.ledger.submit(engine_caller("local", "", "c1:1:0"), Add("c1", 1))
        assert answer.value == 2


async def test_a_request_whose_answer_is_nothing_is_decided_once_as_well(database_url: str) -> None:
    def silent(state: Counter | None, command: Add, now: datetime) -> Decision:
        return msgspec.structs.replace(MACHINE.decide(state, command, now), answer=None)

    async with opened(database_url) as counters:
        ledger = Ledger(counters.store, replace(MACHINE, decide=silent, answers={Add: type(None)}))
        twice = [ledger.submit(a_caller("same"), Add("c1", 1)) for _ in range(2)]
        assert await in_one_batch(counters.store, twice) == [None, None]
        assert await ledger.submit(a_caller("same"), Add("c1", 1)) is None
        assert (await state_of(counters, "c1")).value == 1
