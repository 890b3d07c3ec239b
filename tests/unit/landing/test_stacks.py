"""Stacks of pull requests: merged from below, restacked, orphaned, killed at every step; with both forges."""

from collections import Counter
from pathlib import Path

import pytest

from pointsman.landing.steps import Step
from pointsman.services.orchestrator.domain.landing import commands
from pointsman.services.orchestrator.domain.landing.enums import EntryEvent, EntryReply, EntryState
from pointsman.services.orchestrator.domain.landing.model import Work
from tests.helpers.github import FakeGitHub, review
from tests.helpers.gitlab import FakeGitLab
from tests.unit.landing.queues import die_at, git
from tests.unit.landing.stacks import FIRST, StackScene, said, stack_scene

PROPOSED, LANDED, ASKED = EntryState.PROPOSED, EntryState.LANDED, EntryState.ASKED
KILLED_AT = {
    Step.SPLIT: 1, Step.BRANCH_PUSHED: 2, Step.REQUEST_OPENED: 2, Step.REQUEST_REPORTED: 1, Step.REQUEST_DESCRIBED: 1,
    Step.COMMENTED: 1,
}  # fmt: skip
"""Which time; all other steps are those of any pull request."""


def nothing_twice(stack: StackScene) -> None:
    """One pull request for each layer, no head pushed twice, no comment of ours made twice."""
    assert max(Counter(stack.pushes).values()) == 1
    assert max(Counter(pull.branch for pull in stack.fake.pulls).values()) == 1
    ours = [text for pull in stack.fake.pulls for text in pull.comments if "<!-- pointsman:" in text]
    assert len(ours) == len(set(ours))
    assert stack.fake.problems == [], "every request is as the description has it"


@pytest.mark.parametrize(("forge", "how"), [(FakeGitHub, "squash"), (FakeGitLab, "merge")])
async def test_each_task_is_proposed_on_the_one_below_and_goes_onto_the_target_when_that_is_merged(
    forge: type[FakeGitHub], how: str, tmp_path: Path
) -> None:
    stack = stack_scene(tmp_path, forge())
    await stack.settle()
    assert stack.states() == [PROPOSED] * 3
    shown = [(pull.branch, pull.target, pull.title) for pull in stack.fake.pulls]
    assert shown == [
        ("pointsman/run_1-1", "main", "Do task 1 (1/3)"),
        ("pointsman/run_1-2", "pointsman/run_1-1", "Do task 2 (2/3)"),
        ("pointsman/run_1-3", "pointsman/run_1-2", "Do task 3 (3/3)"),
    ]
    assert "- 2. Do task 2 **(this one)**" in stack.pull(2).body
    assert (
        "Proven on `pointsman/run_1-1`" in stack.pull(2).body,
        "| C2 |" in stack.pull(2).body,
        "| C1 |" in stack.pull(2).body,
    ) == (True, True, False)
    for number in (1, 2, 3):
        assert git(stack.bare, "rev-list", "--count", f"pointsman/run_1-{number}") == str(number + 1), "one commit each"
        tree = git(stack.there.folder, "rev-parse", f"{stack.commits[number - 1]}^{{tree}}")
        assert git(stack.bare, "rev-parse", f"pointsman/run_1-{number}^{{tree}}") == tree, "as it was accepted"
    for number in (1, 2, 3):
        stack.merge(number, how)
        await stack.settle()
        assert stack.states() == [LANDED] * number + [PROPOSED] * (3 - number)
        assert [pull.target for pull in stack.fake.pulls[number : number + 1]] == ["main"] * (number < 3)
    assert stack.main() + "\n" == said(3)
    assert len(stack.there.proven) == 6, "3 at first, then those above what was merged: 2 and 1"
    nothing_twice(stack)


async def test_a_change_of_the_lowest_puts_all_above_onto_it_and_proves_them_again(tmp_path: Path) -> None:
    stack = stack_scene(tmp_path, FakeGitHub())
    await stack.settle()
    heads, proofs = dict(stack.fake.heads), stack.there.proofs
    stack.pull(1).reviews.append(review(heads["pointsman/run_1-1"], "name it better"))
    await stack.settle()
    assert stack.states() == [EntryState.WAITING, PROPOSED, PROPOSED]
    stack.repair(1)
    await stack.settle()
    assert (stack.states(), stack.there.proofs - proofs) == ([PROPOSED] * 3, 3)
    for number in (1, 2, 3):
        branch = f"pointsman/run_1-{number}"
        assert git(stack.bare, "rev-list", "--count", branch) == str(number + 1)
        assert git(stack.bare, "show", f"{branch}:shared").startswith("repaired 1\n")
        assert stack.fake.heads[branch] != heads[branch]
    stack.pull(2).reviews.append(review(stack.fake.heads["pointsman/run_1-2"], "this one too"))
    stack.merge(1, "squash")
    await stack.settle()
    assert stack.states() == [LANDED, PROPOSED, PROPOSED], "what was said about an older commit is answered by a newer"
    stack.pull(2).reviews.append(review(stack.fake.heads["pointsman/run_1-2"], "this one too"))
    await stack.settle()
    stack.repair(2)
    await stack.settle()
    for number in (2, 3):
        stack.merge(number, "squash")
        await stack.settle()
    assert stack.states() == [LANDED] * 3
    assert stack.main() == said(3).replace("line 0", "repaired 1").strip()
    nothing_twice(stack)


@pytest.mark.parametrize("step", KILLED_AT)
async def test_killed_at_every_step_of_a_stack_nothing_happens_twice_and_all_lands(step: Step, tmp_path: Path) -> None:
    stack = stack_scene(tmp_path, FakeGitHub(), tasks=2)
    killing = die_at(step, KILLED_AT[step])
    killed = await stack.settle(killing)
    for number in (1, 2):
        stack.merge(number, "squash")
        killed += await stack.settle(killing)
    assert (stack.states(), killed) == ([LANDED] * 2, 1)
    assert stack.main() + "\n" == said(2)
    nothing_twice(stack)


async def test_a_layer_lands_without_the_one_below_if_a_person_says_so(tmp_path: Path) -> None:
    stack = stack_scene(tmp_path, FakeGitHub())
    await stack.settle()
    stack.there.landing.submit(commands.CancelEntry(FIRST, "not that way"))
    second = stack.entries()[1]
    assert stack.states() == [EntryState.CANCELLED, ASKED, PROPOSED]
    stack.there.landing.submit(commands.AnswerEntry(second.entry_id, EntryReply.RETRY))
    await stack.settle()
    second = stack.entries()[1]
    assert (second.status, second.finding and second.finding.kind) == (EntryState.WAITING, EntryEvent.CONFLICTED)
    assert second.finding is not None
    assert ("task 2" in second.finding.text, "own1" in second.finding.text) == (True, False), "its own changes alone"
    stack.there.landing.submit(commands.LinkStarted(second.entry_id, "run_20"))
    stack.there.landing.submit(commands.LinkEnded(second.entry_id, "run_20", "COMPLETE", stack_work(stack)))
    await stack.settle()
    assert (stack.states()[1], stack.pull(2).target) == (PROPOSED, "main")
    stack.merge(2, "squash")
    await stack.settle()
    assert set(git(stack.bare, "ls-tree", "--name-only", "main").splitlines()) == {"shared", "own2"}


def stack_work(stack: StackScene) -> Work:
    """What the linked run of the second layer made on the target, alone."""
    base = git(stack.bare, "rev-parse", "main")
    return Work("run_20", base, stack.commit(base, said(0, "task 2\n"), "alone", {"own2": "x\n"}))


async def test_a_layer_that_was_merged_into_the_branch_below_has_not_landed(tmp_path: Path) -> None:
    stack = stack_scene(tmp_path, FakeGitHub(), tasks=2)
    await stack.settle()
    stack.merge(2, "squash")
    await stack.settle()
    second = stack.entries()[1]
    assert (second.status, second.finding and second.finding.kind) == (ASKED, EntryEvent.CLOSED)
    assert second.finding is not None
    assert "merged into pointsman/run_1-1, which is not main" in second.finding.text
    stack.merge(1, "squash")
    await stack.settle()
    stack.there.landing.submit(commands.AnswerEntry(second.entry_id, EntryReply.RETRY))
    await stack.settle()
    assert (stack.states(), stack.main() + "\n") == ([LANDED] * 2, said(2)), "it is seen that nothing is missing"
    assert len(stack.fake.pulls) == 2


async def test_what_a_person_pushed_to_our_branch_is_not_pushed_away(tmp_path: Path) -> None:
    stack = stack_scene(tmp_path, FakeGitHub(), tasks=2)
    await stack.settle()
    branch = "pointsman/run_1-2"
    theirs = git(stack.bare, "commit-tree", f"{branch}^{{tree}}", "-p", branch, "-m", "theirs")
    git(stack.bare, "update-ref", f"refs/heads/{branch}", theirs)
    stack.merge(1, "squash")
    await stack.settle()
    second = stack.entries()[1]
    assert (second.status, git(stack.bare, "rev-parse", branch)) == (ASKED, theirs)
    assert second.finding is not None
    assert f"somebody else has pushed {theirs[:12]} to {branch}" in second.finding.text
    git(stack.bare, "update-ref", f"refs/heads/{branch}", f"{theirs}^")
    stack.there.landing.submit(commands.AnswerEntry(second.entry_id, EntryReply.RETRY))
    await stack.settle()
    assert stack.states() == [LANDED, PROPOSED], "the way out that it names is one"


async def test_a_branch_below_that_is_gone_before_it_is_known_to_be_merged_asks_nobody_for_long(tmp_path: Path) -> None:
    stack = stack_scene(tmp_path, FakeGitHub(), tasks=2)

    def merged_and_deleted(step: Step) -> None:
        if step is Step.REQUEST_LOOKED_UP and len(stack.fake.pulls) == 1 and not stack.pull(1).merged:
            stack.fake.trouble.append((422, {}))
            stack.merge(1, "squash")

    await stack.settle(merged_and_deleted)
    names = [name for entry, name in stack.there.landing.events if entry == stack.entries()[1].entry_id]
    assert names[:5] == ["enqueued", "taken", "proven", "blocked", "restacked"]
    assert (stack.states(), stack.pull(2).target) == ([LANDED, PROPOSED], "main")
