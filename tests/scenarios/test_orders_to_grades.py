"""Kinds of orders from Submit to the grade of their delivery; none of them waits for a person without need."""

from pathlib import Path

import pytest

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.handoff.v1.proof_pb2 import GRADE_PROVEN
from pointsman.api.orchestrator.v1.assignment_pb2 import PURPOSE_STAGE
from pointsman.api.orchestrator.v1.run_pb2 import QUESTION_KIND_ACCEPTANCE, RUN_STATE_COMPLETE, ProofTerms
from pointsman.worker import Job
from pointsman.worker.delivery_terms import ARCHIVE_TYPE, pack_checks
from tests.robustness.cheats.attacks_on_packages import NPM, installs_another, with_packages
from tests.robustness.cheats.ecosystems import NODE
from tests.robustness.cheats.functions import BUGS
from tests.robustness.cheats.tasks import Task
from tests.scenarios.grading import UNITTEST, Edits, grade_name, shop
from tests.scenarios.scripted import PASS

pytestmark = pytest.mark.timeout(150)
CALC = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a\n\n\ndef one():\n    return 1\n"
TESTS = """import unittest
import calc
class T(unittest.TestCase):
    def test_add(self):
        self.assertEqual(calc.add(2, 3), 5)
    def test_double(self):
        self.assertEqual(calc.double(2), 4)
    def test_one(self):
        self.assertEqual(calc.one(), 1)
"""
RED = {"calc.py": CALC, "test_calc.py": TESTS}
ADDS = CALC.replace("a - b", "a + b")
ALL = ADDS.replace("return a\n", "return 2 * a\n")
GREEN = {"calc.py": ALL, "test_calc.py": TESTS}


def planned(*tasks: tuple[str, tuple[str, ...]]) -> work.Plan:
    """A plan of tasks with what each depends on, each proven by the repository's tests."""
    return work.Plan(
        tasks=[
            work.PlanTask(
                id=task_id, name=task_id, actions=["do it"], depends=depends,
                acceptance_criteria=[
                    handoff.AcceptanceCriterion(id=f"{task_id}-C", statement="tests pass", verify_command=UNITTEST, required=True)
                ],
            )
            for task_id, depends in tasks
        ],
        confidence=0.9,
        research_slots=[work.ResearchSlot(id="s", question="what?")],
    )  # fmt: skip


async def test_a_half_finished_plan_with_red_tests_goes_on_and_each_step_is_proven_on_the_one_before(
    tmp_path: Path,
) -> None:
    def plan(_job: Job) -> work.Plan:
        return planned(("T1", ()), ("T2", ("T1",)))

    async with shop(tmp_path, RED, {"calc.py": ADDS}, {"calc.py": ALL}, plan=plan, red=[0]) as here:
        run, delivery = await here.done(verify_commands=())
        attempts = [attempt async for attempt in here.client.runs.evidence(run.id)]
    assert run.state == RUN_STATE_COMPLETE, run.question.text
    assert [grade_name(item.grade) for item in delivery.deliverables] == ["PROVEN", "PROVEN"]
    bases = [attempt.finding.proof.base_commit for attempt in attempts]
    assert bases[0] == here.base
    assert [item.proof.base_commit for item in delivery.deliverables] == bases, "the delivery says over what"
    assert [test.id for test in delivery.deliverables[1].proof.commands[0].tests] == ["test_calc.T.test_double"]
    assert bases[1] not in ("", here.base), "the second wave is proven over what was accepted in the first"


async def test_what_a_new_plan_orders_is_proven_over_what_was_accepted_before_it(tmp_path: Path) -> None:
    plans = iter([planned(("T1", ()), ("T2", ("T1",))), planned(("T3", ()))])
    anew = handoff.ReviewDecision(
        decision=handoff.REVIEW_VERDICT_REPLAN,
        review_level=handoff.REVIEW_LEVEL_EXECUTOR,
        feedback=[handoff.Feedback(key="K", statement="double and triple belong together")],
    )
    rounds: list[Edits] = [{"calc.py": ADDS}, {"calc.py": ALL.replace("2 * a", "a + a")}, {"calc.py": ALL}]
    async with shop(tmp_path, RED, *rounds, plan=lambda _job: next(plans), red=[0], reviews=[PASS, anew]) as here:
        run, delivery = await here.done(verify_commands=(), template="fix")
        attempts = [attempt async for attempt in here.client.runs.evidence(run.id)]
    assert run.state == RUN_STATE_COMPLETE, run.question.text
    assert [(item.task_id, grade_name(item.grade)) for item in delivery.deliverables] == [
        ("T1", "PROVEN"),
        ("T3", "PROVEN"),
    ]
    bases = {attempt.task_id: attempt.finding.proof.base_commit for attempt in attempts}
    assert bases["T1"] == here.base
    assert bases["T3"] not in ("", here.base), "what the first plan delivered is the base of the second"


async def test_a_task_that_only_writes_tests_is_worth_a_reviewers_word(tmp_path: Path) -> None:
    more = TESTS + "    def test_zero(self):\n        self.assertEqual(calc.add(0, 0), 0)\n"
    async with shop(tmp_path, GREEN, {"test_calc.py": more}) as here:
        assert await here.graded() == "ON WORD"


async def test_a_feature_on_a_green_base_is_unbroken(tmp_path: Path) -> None:
    more = TESTS + "    def test_two(self):\n        self.assertEqual(calc.two(), 2)\n"
    feature = {"calc.py": f"{ALL}\n\ndef two():\n    return 2\n", "test_calc.py": more}
    async with shop(tmp_path, GREEN, feature) as here:
        assert await here.graded() == "UNBROKEN"


async def test_a_refactoring_is_unbroken(tmp_path: Path) -> None:
    async with shop(tmp_path, GREEN, {"calc.py": ALL.replace("2 * a", "a + a")}) as here:
        assert await here.graded() == "UNBROKEN"


async def test_a_dependency_bump_is_unbroken_and_named_as_a_risk(tmp_path: Path) -> None:
    files = {**GREEN, "requirements.txt": "left-pad==1.0\n"}
    async with shop(tmp_path, files, {"requirements.txt": "left-pad==1.1\n"}) as here:
        run, delivery = await here.done()
    assert (run.state, grade_name(run.grade)) == (RUN_STATE_COMPLETE, "UNBROKEN"), run.question.text
    assert any("dependencies changed" in risk.statement for risk in delivery.open_risks)


async def test_a_dependency_that_is_led_to_another_package_is_shown_to_the_reviewer_who_sends_it_back(
    tmp_path: Path,
) -> None:
    task = Task(NODE, BUGS[0])
    files = {**task.base, **with_packages(task), "pointsman.toml": f'[workspace]\nsetup = ["{NPM[0]}"]\n'}
    retry = handoff.ReviewDecision(
        decision=handoff.REVIEW_VERDICT_RETRY,
        review_level=handoff.REVIEW_LEVEL_EXECUTOR,
        feedback=[handoff.Feedback(key="K", statement="use check")],
    )
    redirected = installs_another(task)
    assert redirected is not None
    async with shop(
        tmp_path,
        {name: text or "" for name, text in files.items()},
        redirected,
        task.solution | {name: files[name] for name in ("package.json", "package-lock.json")},
        reviews=[retry],
    ) as here:
        run, delivery = await here.done(verify_commands=[("npm", "test")])
    assert (run.state, grade_name(run.grade)) == (RUN_STATE_COMPLETE, "PROVEN"), run.question.text
    assert b"takes a dependency from the tree" in here.prompts[1], "the reviewer is shown where the package comes from"
    assert [file.path for file in delivery.deliverables[0].changed_files] == ["calc.mjs"]


SNAPSHOT = """import pathlib, unittest
import calc
class S(unittest.TestCase):
    def test_page(self):
        self.assertEqual(calc.page(), pathlib.Path(__file__).with_name("__snapshots__").joinpath("page.snap").read_text())
"""


async def test_generated_snapshots_are_taken_where_tests_may_change_and_refused_elsewhere(tmp_path: Path) -> None:
    page = 'def page():\n    return "{}"\n'
    files = {"calc.py": page.format("old"), "test_page.py": SNAPSHOT, "__snapshots__/page.snap": "old"}
    edits = {"calc.py": page.format("new"), "__snapshots__/page.snap": "new"}
    async with shop(tmp_path, files, edits, edits, edits) as here:
        allowed = ProofTerms(tests_may_change=True)
        run, delivery = await here.done(proof_terms=allowed)
        assert (run.state, grade_name(run.grade)) == (RUN_STATE_COMPLETE, "UNBROKEN"), run.question.text
        assert any("tests may change in this task" in risk.statement for risk in delivery.open_risks)
        refused, _ = await here.done()
    assert refused.HasField("question"), "the same tests fail twice: a person is asked"
    assert "test_page" in refused.question.text


async def test_a_monorepo_with_two_runners_is_proven_by_both(tmp_path: Path) -> None:
    suite = "const test = require('node:test'); const assert = require('node:assert');\n"
    files = {**RED, "web/sum.js": "exports.sum = (a, b) => a - b;\n"}
    files["web/sum.test.js"] = f"{suite}test('sums', () => assert.equal(require('./sum.js').sum(1, 2), 3));\n"
    fixed = {"calc.py": ALL, "web/sum.js": "exports.sum = (a, b) => a + b;\n"}
    commands = [UNITTEST, ("node", "--test", "web/")]
    async with shop(tmp_path, files, fixed) as here:
        run, _ = await here.done(verify_commands=commands)
        (attempt,) = [attempt async for attempt in here.client.runs.evidence(run.id)]
    assert (run.state, grade_name(run.grade)) == (RUN_STATE_COMPLETE, "PROVEN"), run.question.text
    assert [command.adapter for command in attempt.finding.proof.commands] == ["unittest", "node"]


def thinking(job: Job) -> work.Plan | work.StageResult:
    """The plan of one task, and a word of approval in the stages PLAN and ARCH of its pipeline."""
    if job.assignment.purpose == PURPOSE_STAGE:
        return work.StageResult(route=work.StageRoute(verdict="PASS", route="NEXT"))
    return planned(("T1", ()))


async def test_documents_that_follow_the_code_leave_its_grade(tmp_path: Path) -> None:
    async with shop(tmp_path, RED, {"calc.py": ALL}, {"README.md": "# What it adds\n"}, thinks=thinking) as here:
        run, delivery = await here.done(template="standard")
    assert (run.state, grade_name(run.grade)) == (RUN_STATE_COMPLETE, "PROVEN"), run.question.text
    assert "DOCS" in here.asked
    assert {item.path for item in delivery.deliverables[0].changed_files} == {"calc.py", "README.md"}


async def test_what_a_writer_of_documents_does_to_the_code_is_proven_too(tmp_path: Path) -> None:
    undone = {"README.md": "# What it adds\n", "calc.py": ADDS}
    fixed: list[Edits] = [{"calc.py": ALL}, {"README.md": "# What it adds\n"}]
    async with shop(tmp_path, RED, {"calc.py": ALL}, undone, *fixed, thinks=thinking) as here:
        run, _ = await here.done(template="standard", proof_terms=ProofTerms(fixes=["test_calc.T.test_double"]))
    assert (run.state, grade_name(run.grade)) == (RUN_STATE_COMPLETE, "PROVEN"), run.question.text
    assert here.asked.count("DOCS") == 2, "the first documents undid the code after it was tested"


async def test_a_project_without_tests_is_worth_a_reviewers_word(tmp_path: Path) -> None:
    said = [handoff.AcceptanceCriterion(id="A1", statement="it says hello", required=True)]
    async with shop(tmp_path, {"hello.txt": "bye\n"}, {"hello.txt": "hello\n"}) as here:
        run, _ = await here.done(verify_commands=(), criteria=said)
    assert (run.state, grade_name(run.grade)) == (RUN_STATE_COMPLETE, "ON WORD"), run.question.text


async def test_a_retry_starts_on_the_same_base_with_the_failing_tests_and_no_reviewer_before_that(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path, RED, {"calc.py": ALL.replace("return 1", "return 2")}, {"calc.py": ALL}) as here:
        run, delivery = await here.done()
        (attempt,) = [attempt async for attempt in here.client.runs.evidence(run.id)]
    assert (run.state, grade_name(run.grade)) == (RUN_STATE_COMPLETE, "PROVEN"), run.question.text
    assert attempt.finding.proof.base_commit == here.base
    assert [setback.stage for setback in attempt.setbacks] == ["REVIEW", "TEST"]
    assert "test_one" in attempt.setbacks[-1].reason
    assert b"test_one" in here.prompts[1], "the second try knows which test failed"
    assert here.asked == ["DEV", "DEV", "REVIEW"], "two tries, and one review of the second"
    assert delivery.deliverables[0].proof_reused


TWO = TESTS.replace("class T", "class Two").replace("calc.add(2, 3), 5", "calc.two(), 2")
FIRST = {"test_two.py": TWO}


async def test_tests_that_another_coder_wrote_first_prove_the_code(tmp_path: Path) -> None:
    code = {"calc.py": f"{ALL}\n\ndef two():\n    return 2\n"}
    async with shop(tmp_path, GREEN, FIRST, code, red=[0], coders=2) as here:
        run, delivery = await here.done(template="test-first")
        (attempt,) = [attempt async for attempt in here.client.runs.evidence(run.id)]
    assert (run.state, grade_name(run.grade)) == (RUN_STATE_COMPLETE, "PROVEN"), run.question.text
    assert here.asked[:2] == ["TEST:write", "DEV"]
    assert here.agents[0] != here.agents[1], "another coder writes the code"
    assert {item.path for item in delivery.deliverables[0].changed_files} == {"calc.py", "test_two.py"}
    assert any("another author wrote first" in reason for reason in attempt.finding.proof.reasons)


async def test_code_that_empties_the_tests_which_came_first_is_sent_back(tmp_path: Path) -> None:
    code = {"calc.py": f"{ALL}\n\ndef two():\n    return 2\n"}
    cheat = {"calc.py": f"{ALL}\n\ndef two():\n    return 3\n", "test_two.py": TWO.replace("calc.two(), 2", "2, 2")}
    async with shop(tmp_path, GREEN, FIRST, cheat, code, red=[0], coders=2) as here:
        run, _ = await here.done(template="test-first")
    assert (run.state, grade_name(run.grade)) == (RUN_STATE_COMPLETE, "PROVEN"), run.question.text
    assert here.asked[:3] == ["TEST:write", "DEV", "DEV"]
    assert b"another author wrote before the code were changed: test_two.py" in here.prompts[2]


async def test_a_coder_alone_writes_tests_and_code_and_they_are_worth_what_own_tests_are(tmp_path: Path) -> None:
    code = {"calc.py": f"{ALL}\n\ndef two():\n    return 2\n"}
    async with shop(tmp_path, GREEN, FIRST, code, red=[0]) as here:
        run, delivery = await here.done(template="test-first")
    assert (run.state, grade_name(run.grade)) == (RUN_STATE_COMPLETE, "UNBROKEN"), run.question.text
    assert any("they count as the coder's own" in risk.statement for risk in delivery.open_risks)


CANARY = "canary-2718"
HELD_OUT = f"""import unittest
import calc
class Hidden(unittest.TestCase):
    def test_large(self):
        print("{CANARY}")
        self.assertEqual(calc.add(10, 10), 20, "{CANARY}")
"""


async def test_held_out_checks_judge_what_is_delivered_and_none_of_their_words_reach_anybody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    special = ALL.replace("return a + b", "return 5 if a == 2 else 0")
    async with shop(tmp_path, RED, {"calc.py": special}, {"calc.py": ALL}) as here:
        archive = pack_checks({"test_hidden.py": HELD_OUT.encode()})
        stored = await here.client.artifacts.put(archive, ARCHIVE_TYPE, held_out=True)
        terms = ProofTerms(held_out=stored, fixes=["test_calc.T.test_add"], require_grade=GRADE_PROVEN)
        run, _ = await here.done(proof_terms=terms)
        journal = [row.SerializeToString() async for row in here.client.runs.watch(run.id)]
    assert (run.state, grade_name(run.grade)) == (RUN_STATE_COMPLETE, "PROVEN"), run.question.text
    assert b"held-out check 1 of 1 failed" in here.prompts[1]
    for secret in (CANARY.encode(), b"test_large", b"Hidden"):
        assert not any(secret in prompt for prompt in here.prompts)
        assert not any(secret in row for row in journal)
        assert secret.decode() not in caplog.text


async def test_work_below_the_required_grade_is_shown_to_a_person(tmp_path: Path) -> None:
    async with shop(tmp_path, GREEN, {"calc.py": ALL.replace("2 * a", "a + a")}) as here:
        run, _ = await here.done(proof_terms=ProofTerms(require_grade=GRADE_PROVEN))
    assert run.question.kind == QUESTION_KIND_ACCEPTANCE
    assert "it is worth UNBROKEN, and PROVEN is required" in run.question.text
