"""Task files of other tools: recognised by content, nothing lost, every problem by its place."""

import json
from typing import Any

import pytest

from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.workflow.domain.enums import TaskStatus
from pointsman.services.workflow.domain.tasks import TaskSpec
from pointsman.services.workflow.formats.tasks_reader import read_any, with_statuses

SPEC_KIT = """\
# Tasks: Photo albums

## Format: `[ID] [P?] [Story] Description`
- **[P]**: can run in parallel

## Phase 1: Setup
- [x] T001 Create project structure in src/ and tests/
- [ ] T002 Initialize the project with `pyproject.toml`
- [ ] T003 [P] Configure linting in ruff.toml
- [ ] T004 [P] [US1] Contract test for POST /api/albums in tests/contract/test_albums.py

## Phase 2: User Story 1
- [ ] **T005** [US1] Implement AlbumService in src/services/album.py (depends on T002, T004)
  - verify: `pytest tests/contract`
- [ ] T006 [US1] Wire it up and/or log it

## Parallel Example
```
- [ ] T099 not a task
```

## Validation Checklist
- [ ] All contracts have tests
"""


def specs(text: str) -> dict[str, TaskSpec]:
    found = read_any(text)
    assert found.problems == ()
    return {task.spec.task_id: task.spec for task in found.tasks}


def statuses(text: str) -> dict[str, TaskStatus]:
    return {task.spec.task_id: task.status or TaskStatus.PENDING for task in read_any(text).tasks}


def test_spec_kit_tasks_keep_ids_phases_stories_paths_and_boxes() -> None:
    tasks = specs(SPEC_KIT)
    assert list(tasks) == ["T001", "T002", "T003", "T004", "T005", "T006"]
    assert tasks["T001"].files == ("src/", "tests/")
    assert tasks["T002"].files == ("pyproject.toml",)
    assert tasks["T003"].files == ("ruff.toml",)
    assert tasks["T004"].files == ("tests/contract/test_albums.py",)
    assert tasks["T006"].files == ()
    assert tasks["T005"].phase == "Phase 2: User Story 1"
    assert "User story US1" in tasks["T005"].requirement
    assert "verify: `pytest tests/contract`" in tasks["T005"].requirement
    assert statuses(SPEC_KIT)["T001"] is TaskStatus.COMPLETED
    assert statuses(SPEC_KIT)["T002"] is TaskStatus.PENDING


def test_spec_kit_tasks_without_a_mark_follow_each_other_and_marked_ones_go_side_by_side() -> None:
    tasks = specs(SPEC_KIT)
    assert tasks["T001"].depends == ()
    assert tasks["T002"].depends == ("T001",)
    assert tasks["T003"].depends == tasks["T004"].depends == ("T002",)
    assert tasks["T005"].depends == ("T003", "T004", "T002"), "all of the phase before, and what it names"
    assert tasks["T006"].depends == ("T005",)


def test_a_box_without_an_id_among_spec_kit_tasks_is_named_by_its_line() -> None:
    found = read_any("## Phase 1\n- [ ] T001 Do it\n- [ ] Forgotten\n- [ ] T003\n")
    assert [problem.field for problem in found.problems] == ["markdown:4", "markdown:3"]


@pytest.mark.parametrize("before", ["[ ]", "[x]", "[X]"])
def test_states_are_written_into_spec_kit_boxes_and_nothing_else_changes(before: str) -> None:
    text = f"# Tasks\r\n- {before} T001 One\r\n- [ ] T002 Two\r\n```\r\n- [ ] T001 code\r\n```\r\n"
    done, changed = with_statuses(text, {"T001": TaskStatus.COMPLETED})
    assert changed == (before == "[ ]")
    assert done == text.replace("[ ] T001 One", "[x] T001 One")
    undone, _ = with_statuses(text, {"T001": TaskStatus.FAILED, "T002": TaskStatus.SKIPPED})
    assert undone == text.replace(f"{before} T001 One", "[ ] T001 One").replace("[ ] T002", "[x] T002")
    assert with_statuses(done, {"T001": TaskStatus.COMPLETED}) == (done, 0)


def issue(issue_id: str, title: str = "a title", **more: Any) -> dict[str, Any]:
    return {"id": issue_id, "title": title, "status": "open", "priority": 2, "issue_type": "task", **more}


def needs(own: str, other: str, kind: str = "blocks") -> dict[str, str]:
    return {"issue_id": own, "depends_on_id": other, "type": kind}


def lines(*issues: dict[str, Any]) -> str:
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in issues)


BEADS = lines(
    issue("bd-e", "Login", issue_type="epic"),
    issue("bd-1", "Model", status="closed", dependencies=[needs("bd-1", "bd-e", "parent-child")]),
    issue("bd-2", "Form", description="a form", labels=["ui"], priority=0,
          dependencies=[needs("bd-2", "bd-e", "parent-child"), needs("bd-2", "bd-1")]),
    issue("bd-3", "Release", dependencies=[needs("bd-3", "bd-e"), needs("bd-3", "bd-9"), needs("bd-3", "bd-2", "related")]),
    issue("bd-4", "Later", status="deferred"),
    issue("bd-5", "Gone", status="tombstone"),
)  # fmt: skip


def test_beads_issues_keep_ids_order_epics_and_states() -> None:
    tasks = specs(BEADS)
    assert list(tasks) == ["bd-1", "bd-2", "bd-3", "bd-4"]
    assert tasks["bd-2"].phase == "Login"
    assert tasks["bd-2"].depends == ("bd-1",)
    assert (tasks["bd-2"].priority, tasks["bd-2"].leverage) == (0, "task, ui")
    assert "a form" in tasks["bd-2"].requirement
    assert tasks["bd-3"].depends == ("bd-1", "bd-2"), "an epic stands for its children"
    assert tasks["bd-3"].blocked_by == ("bd-9",), "not in the file"
    assert statuses(BEADS) == {
        "bd-1": TaskStatus.COMPLETED,
        "bd-2": TaskStatus.PENDING,
        "bd-3": TaskStatus.BLOCKED,
        "bd-4": TaskStatus.BLOCKED,
    }


def test_a_damaged_line_of_beads_is_named_and_the_others_are_read() -> None:
    found = read_any(lines(issue("bd-1")) + '{"id": "bd-2"\n' + '{"title": "no id"}\n' + lines(issue("bd-3")))
    assert [problem.field for problem in found.problems] == ["markdown:2", "markdown:3"]
    assert [task.spec.task_id for task in found.tasks] == ["bd-1", "bd-3"]


def test_states_are_written_into_the_lines_of_settled_beads_alone() -> None:
    done, _ = with_statuses(BEADS, {"bd-2": TaskStatus.COMPLETED, "bd-3": TaskStatus.FAILED})
    changed = [(old, new) for old, new in zip(BEADS.splitlines(), done.splitlines(), strict=True) if old != new]
    assert len(changed) == 1
    assert json.loads(changed[0][1]) == {**json.loads(changed[0][0]), "status": "closed"}


GITHUB = json.dumps(
    [
        {"number": 7, "title": "Parent", "state": "OPEN", "body": "x" * 9000, "labels": [{"name": "P1"}, {"name": "api"}],
         "subIssues": {"nodes": [{"number": 8, "title": "Child", "state": "OPEN"}], "totalCount": 1}, "url": "https://x.test/7"},
        {"number": 8, "title": "Child", "state": "OPEN", "parent": {"number": 7, "title": "Parent"},
         "blockedBy": {"nodes": [{"number": 3, "state": "CLOSED"}, {"number": 4, "state": "OPEN"}]}},
        {"number": 9, "title": "Dropped", "state": "CLOSED", "stateReason": "NOT_PLANNED", "milestone": {"title": "v1"}},
        {"number": 10, "title": "Done", "state": "CLOSED", "stateReason": "COMPLETED"},
    ]
)  # fmt: skip


def test_github_issues_keep_numbers_parents_blockers_and_states() -> None:
    tasks = specs(GITHUB)
    assert tasks["gh-7"].depends == ("gh-8",)
    assert (tasks["gh-7"].priority, tasks["gh-7"].leverage) == (1, "P1, api")
    assert len(tasks["gh-7"].requirement) + sum(map(len, tasks["gh-7"].actions[1:])) == 9000, "nothing is cut off"
    assert tasks["gh-8"].phase == "Parent"
    assert tasks["gh-8"].blocked_by == ("gh-4",)
    assert tasks["gh-9"].phase == "v1"
    assert statuses(GITHUB) == {
        "gh-7": TaskStatus.PENDING,
        "gh-8": TaskStatus.BLOCKED,
        "gh-9": TaskStatus.SKIPPED,
        "gh-10": TaskStatus.COMPLETED,
    }


def test_an_issue_without_a_title_is_named_with_the_fields_to_ask_for() -> None:
    found = read_any('[{"number": 1, "title": "one"}, {"number": 2}]')
    assert [problem.field for problem in found.problems] == ["markdown:1"]
    assert "line 1: title: an issue has a title; add --json number,title" in found.problems[0].description


def said(text: str, tag: str = "") -> list[str]:
    return [problem.description.partition(";")[0] for problem in read_any(text, tag).problems]


def test_every_problem_of_a_list_of_github_is_named_by_its_line_and_field() -> None:
    text = """[
      {"number": 1, "title": "one"},
      {"number": "2",
       "title": ["x"],
       "labels": 3},
      "no issue", {"number": true, "title": "t"}
    ]"""
    assert said(text) == [
        "line 3: number: an issue has a number",
        "line 4: title: an issue has a title",
        "line 5: labels: is a list",
        "line 6: number: an issue is an object with a number and a title",
        "line 6: number: an issue has a number",
    ]
    assert [task.spec.task_id for task in read_any(text).tasks] == ["gh-1"]
    assert read_any(text).places == ("markdown:2",)


BROKEN_TASK_MASTER = """{
  "master": {"tasks": [
    {"id": 1, "title": "with \\"quotes\\" and [, {",
     "dependencies": "2"},
    {"id": null,
     "title": 5, "status": 7},
    "no task",
    {"id": 4, "title": "four", "dependencies": [[1]], "subtasks": [
      {"id": 1, "title": "fine"},
      {"id": 2}]},
    {"id": 5, "title": "five", "subtasks": [
      {"id": 1, "title": "fine"},
      {"id": 2}]}
  ]},
  "next": {"tasks": [{"id": 1, "title": "later"}]}
}"""


def test_every_problem_of_task_master_is_named_by_its_line_and_field() -> None:
    assert said(BROKEN_TASK_MASTER) == [
        "line 4: dependencies: is a list of ids",
        "line 5: id: a task has an id, which is a number or a text",
        "line 6: title: a task has a title, which is a text",
        "line 6: status: is a text such as pending or done",
        "line 7: a task is an object with an id and a title",
        "line 8: dependencies: has something that is no id: a number or a text",
        "line 13: title: a task has a title, which is a text",
    ]
    assert [task.spec.task_id for task in read_any(BROKEN_TASK_MASTER).tasks] == ["5.1", "5"]


def test_a_hostile_list_has_a_hundred_problems_and_no_more() -> None:
    assert len(said('{"tasks": [' + "1," * 20_000 + "1]}")) == 100


def test_a_tag_of_task_master_is_chosen_and_a_wrong_one_lists_those_that_are_there() -> None:
    assert [task.spec.name for task in read_any(BROKEN_TASK_MASTER, "next").tasks] == ["later"]
    assert said(BROKEN_TASK_MASTER, "soon") == ["'soon' is no tag of this file, which has master, next"]
    without = '{"b": {"tasks": []}, "a": {"tasks": [{"id": 1, "title": "t"}]}}'
    assert read_any(without).problems[0].description.endswith("name one that it has with --tag: a, b")
    assert said(without, "b") == ["line 1: there is no task below the tag 'b'"]
    assert [task.spec.task_id for task in read_any('{"a": {"tasks": [{"id": 1, "title": "t"}]}}').tasks] == ["1"]
    for other in (GITHUB, BEADS, "## T1: One\n"):
        assert said(other, "next") == ["only task-master's tasks.json has tags"]


def test_states_are_written_into_one_tag_of_task_master_and_nothing_else_changes() -> None:
    text = """{"a": {"tasks": [{"id": 1, "title": "t", "status" :"pending" }]},
	"b": {"tasks": [{"id": 1, "title": "t", "subtasks": [{ "id": 1, "title": "s", "status": "in-progress"}]}]}}"""
    done = {"1": TaskStatus.COMPLETED, "1.1": TaskStatus.SKIPPED}
    expected = text.replace('[{"id": 1, "title": "t", "sub', '[{"status": "done", "id": 1, "title": "t", "sub')
    assert with_statuses(text, done, "b") == (expected.replace("in-progress", "cancelled"), 2)
    assert with_statuses(text, done, "a") == (text.replace("pending", "done"), 1)
    with pytest.raises(Refusal, match="'c' is no tag of this file, which has a, b"):
        with_statuses(text, done, "c")


TASK_MASTER = {
    "tasks": [
        {"id": 1, "title": "Init", "description": "d", "status": "done", "dependencies": [], "priority": "high"},
        {"id": 2, "title": "Core", "status": "in-progress", "dependencies": [1], "testStrategy": "run it",
         "subtasks": [
             {"id": 1, "title": "Auth", "status": "done", "dependencies": []},
             {"id": 2, "title": "Store", "status": "pending", "dependencies": [1, "1"]},
         ]},
        {"id": 3, "title": "Docs", "status": "deferred", "dependencies": [2]},
    ]
}  # fmt: skip


@pytest.mark.parametrize("document", [TASK_MASTER, {"master": TASK_MASTER, "other": {"tasks": []}}])
def test_task_master_tasks_come_after_their_subtasks(document: dict[str, Any]) -> None:
    for text in (json.dumps(document), json.dumps(document, indent=2)):
        tasks = specs(text)
        assert list(tasks) == ["1", "2.1", "2.2", "2", "3"]
        assert tasks["2"].depends == ("1", "2.1", "2.2")
        assert tasks["2.2"].depends == ("1", "2.1")
        assert tasks["2.2"].phase == "Core"
        assert tasks["2"].requirement == "run it"
        assert statuses(text)["3"] is TaskStatus.BLOCKED
        assert statuses(text)["2.1"] is TaskStatus.COMPLETED


def test_our_own_tasks_are_read_as_before_whatever_boxes_they_have() -> None:
    tasks = specs("# Plan\n\n## T1: One\n- **actions**: edit\n- [ ] T002 a box\n\n## T2: Two\n- **depends**: T1\n")
    assert list(tasks) == ["T1", "T2"]


@pytest.mark.parametrize("text", ['{"a": 1}', "[1, 2]", "[]", '{"id": 1', '{"tasks": "no"}', "[" * 5000])
def test_json_without_tasks_is_refused_with_what_is_known(text: str) -> None:
    found = read_any(text)
    assert found.tasks == ()
    assert len(found.problems) == 1


def test_states_cannot_be_written_into_a_list_of_github() -> None:
    with pytest.raises(Refusal, match="written into spec-kit"):
        with_statuses(GITHUB, {})


@pytest.mark.parametrize("line", ["- [ ] T001 " + "[a" * 50_000, "- [ ] T001 depends on " + "T1" * 50_000, "# " + " " * 200_000 + "x",
                                  "- [ ] T001 " + "a/" * 50_000, "- [ ] T001 " + "`" * 100_000, " " * 200_000 + "- ["])  # fmt: skip
def test_hostile_lines_take_linear_time(line: str) -> None:
    read_any("- [ ] T000 first\n" + line)
