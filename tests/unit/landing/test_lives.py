"""Two hundred lives of a pull request with each forge, all merged or asked; no second push, request or comment, whenever it is killed."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from pointsman.landing.forge import ForgeAway, ForgeRefused
from pointsman.landing.steps import Step
from pointsman.services.orchestrator.domain.landing.enums import EntryState
from pointsman.services.orchestrator.domain.landing.model import MAX_LINKS
from tests.helpers.eventually import eventually
from tests.helpers.github import FakeGitHub
from tests.helpers.gitlab import FakeGitLab
from tests.unit.landing.lives import ENTRY, REST, Life
from tests.unit.landing.queues import Killed, die_at

LIVES = 200
"""With each forge."""
FORGES = (FakeGitHub, FakeGitLab)
FORGE_STEPS = (
    Step.BRANCH_PUSHED, Step.REQUEST_LOOKED_UP, Step.REQUEST_OPENED, Step.REQUEST_REPORTED, Step.FORGE_READ,
    Step.COMMENT_LOOKED_UP, Step.COMMENTED,
)  # fmt: skip


def nothing_twice(life: Life) -> None:
    """No head was pushed twice, no request opened twice, no comment of ours made twice."""
    assert max(Counter(life.pushes).values()) == 1
    assert Counter(pull.branch for pull in life.fake.pulls) == {"pointsman/run_1": 1}
    ours = [text for pull in life.fake.pulls for text in pull.comments if "<!-- pointsman:" in text]
    assert len(ours) == len(set(ours))
    assert life.fake.problems == [], "every request is as the description has it"


@pytest.mark.timeout(180)
@pytest.mark.parametrize("forge", FORGES)
async def test_every_life_ends_merged_or_asked_and_they_meet_everything_that_can_happen(
    forge: type[FakeGitHub],
) -> None:
    met: Counter[str] = Counter()
    ends: Counter[EntryState] = Counter()
    for number in range(LIVES):
        life = Life(f"{number % 10}/{number // 10}", forge())
        await life.live()
        assert life.status in REST, life.happened
        nothing_twice(life)
        assert len(life.client.landing.entries[ENTRY].links) <= MAX_LINKS
        met.update(life.happened)
        ends[life.status] += 1
    wanted = "merged green pending red flaky review approved comment dirty closed limited broken lost unheard Killed ForgeAway"
    assert {name for name in (*wanted.split(), "woken twice", "forced base") if met[name] < 5} == set()
    assert min(ends.values()) > 20


@pytest.mark.parametrize("forge", FORGES)
@pytest.mark.parametrize("step", FORGE_STEPS)
async def test_killed_at_every_step_of_a_pull_request_nothing_happens_twice(
    step: Step, forge: type[FakeGitHub]
) -> None:
    life = Life("fixed", forge())
    happenings = iter(["red", "merged"])

    def happen() -> None:
        dict(life.happenings())[next(happenings)]()

    killing = die_at(step)
    life.begin()
    killed = 0
    while life.status not in REST:
        if life.status is EntryState.PROPOSED:
            happen()
        for _ in range(3):
            try:
                await _turn(life, killing)
                break
            except Killed:
                killed += 1
    assert (life.status, killed) == (EntryState.LANDED, 1)
    nothing_twice(life)
    (pull,) = life.fake.pulls
    assert sum("<!-- pointsman:" in text for text in pull.comments) == 1


@pytest.mark.parametrize("forge", FORGES)
async def test_what_a_reviewer_said_about_an_older_commit_was_answered_by_the_newer_one(
    forge: type[FakeGitHub],
) -> None:
    life = Life("review", forge())
    life.begin()
    for name in ("", "review", "", "", "green", "merged"):
        if name:
            dict(life.happenings())[name]()
        await _turn(life, lambda _step: None)
    assert (life.status, len(life.client.landing.entries[ENTRY].links)) == (EntryState.LANDED, 1)
    ((_, link),) = life.client.landing.started
    assert ("rename it" in link.intent, "untrusted" in link.intent) == (True, True)


@pytest.mark.parametrize("limit", [(), ((429, {"Retry-After": "9"}),)], ids=["welcome", "limited"])
async def test_a_webhook_brings_the_next_look_forward_unless_the_forge_asks_to_wait(limit: tuple[Any, ...]) -> None:
    life = Life("woken")
    life.begin()
    await _turn(life, lambda _step: None)
    proposals, until, wakes = life.proposals(lambda _step: None), asyncio.Event(), life.client.landing.wakes
    proposals.follow_seconds, proposals.gather_seconds = 3600.0, 0.0
    following = asyncio.create_task(proposals.follow(life.client, "one", "repository", until))
    life.fake.trouble, before = list(limit), life.fake.asked.total()

    async def has_looked() -> bool:
        return not life.fake.trouble if limit else life.fake.asked.total() > before

    async def is_settled() -> bool:
        return bool(wakes.empty()) if limit else life.status is EntryState.LANDED

    wakes.put_nowait(True)
    await eventually(has_looked)
    dict(life.happenings())["merged"]()
    wakes.put_nowait(True)
    await eventually(is_settled)
    assert life.status is (EntryState.PROPOSED if limit else EntryState.LANDED)
    until.set()
    await following


TROUBLE = {
    "limited": ((403, {"Retry-After": "900"}), "the rate limit is reached; it is tried again, in 900 s"),
    "broken": ((502, {}), "HTTP 502; it is tried again"),
    "expired": ((401, {}), "does not take the token (not now): write a new one into the file"),
    "refused": ((404, {}), "refuses GET"),
}


@pytest.mark.parametrize("forge", FORGES)
@pytest.mark.parametrize("what", TROUBLE)
async def test_what_holds_a_pull_request_up_is_shown_until_it_is_over(what: str, forge: type[FakeGitHub]) -> None:
    life, (trouble, words) = Life("held up", forge()), TROUBLE[what]
    life.begin()
    await _turn(life, lambda _step: None)
    life.fake.trouble = [trouble]
    with pytest.raises((ForgeAway, ForgeRefused)):
        await _turn(life, lambda _step: None)
    assert (life.status, words in life.client.landing.shown(ENTRY).waiting_for) == (EntryState.PROPOSED, True)
    await _turn(life, lambda _step: None)
    shown = life.client.landing.shown(ENTRY)
    assert shown.waiting_for == "checks and review of the pull request", "a look that comes through takes it back"
    assert life.status is EntryState.PROPOSED


@pytest.mark.parametrize("forge", FORGES)
async def test_a_pull_request_that_a_person_merges_while_it_is_proven_again_is_not_opened_again(
    forge: type[FakeGitHub],
) -> None:
    life = Life("in the middle", forge())
    life.begin()
    await _turn(life, lambda _step: None)
    happenings = dict(life.happenings())
    happenings["dirty"]()
    await _turn(life, lambda _step: None)
    assert life.status is EntryState.QUEUED
    happenings["merged"]()
    await _turn(life, lambda _step: None)
    assert (life.status, len(life.fake.pulls), len(life.pushes)) == (EntryState.LANDED, 1, 1)


async def _turn(life: Life, reach: object) -> None:
    proposals = life.proposals(reach)  # type: ignore[arg-type]
    if life.status is EntryState.PROPOSED:
        await proposals.look(life.client, "one", "repository")
    elif life.status is EntryState.WAITING:
        life.linked_run()
    else:
        await life.round(proposals)
