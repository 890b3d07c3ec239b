"""tasks.md: both vocabularies in, errors by line, and the same plan out and in again."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.api.workflow.v1 import reading_pb2
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.workflow.domain import commands
from pointsman.services.workflow.domain.enums import TaskStatus
from pointsman.services.workflow.domain.tasks import Task, TaskSpec
from pointsman.services.workflow.formats.tasks_markdown import FIELDS, STATUS_NAMES, read_tasks, write_tasks
from pointsman.services.workflow.formats.workflow_state_reader import read_state
from pointsman.services.workflow.wire.decode import import_state, import_tasks
from tests.unit.workflow.flow import ID, NOON, Flow, planned, spec

CHINESE = """# 任务清单

一些说明。

## T1: 创建用户接口

- **阶段**: api
- **文件**: `src/services/user.ts`, `src/types.ts`
- **复用**: `src/lib/http.ts`
- **设计参考**：tech-design.md § 3.1
- **需求**: 用户可以登录
- **actions**: create_file, git_commit
- **阻塞依赖**: api_spec
- **状态**: 已完成

## T2：质量检查
**依赖**: T1
**质量关卡**: true
**阈值**: 80
"""

ENGLISH = """## T1: make the user api
* **phase**: api
* **file**: src/services/user.ts
* **leverage**: src/lib/http.ts
* **design_ref**: § 3.1
* **requirement**: users can log in
* **actions**:
  - create, then test
  - `git_commit`
* **depends**: none
* **blocked_by**: api_spec design_spec
* **quality_gate**: no
* **status**: pending
* **priority**: 3
"""


def problems_in(markdown: str) -> list[tuple[str, str]]:
    with pytest.raises(Refusal) as caught:
        read_tasks(markdown)
    return [(violation.field, violation.description) for violation in caught.value.violations]


def test_the_chinese_vocabulary_is_read() -> None:
    (first, second), places = read_tasks(CHINESE)
    assert first.spec == TaskSpec(
        "T1",
        "创建用户接口",
        "api",
        ("src/services/user.ts", "src/types.ts"),
        ("create_file", "git_commit"),
        (),
        ("api_spec",),
        leverage="src/lib/http.ts",
        design_ref="tech-design.md § 3.1",
        requirement="用户可以登录",
    )
    assert first.status is TaskStatus.COMPLETED
    assert second.spec == TaskSpec("T2", "质量检查", depends=("T1",), quality_gate=True, threshold="80")
    assert second.status is None
    assert places == ("markdown:5", "markdown:16")


def test_the_english_vocabulary_is_read() -> None:
    (task,), _ = read_tasks(ENGLISH)
    assert task.spec.actions == ("create, then test", "git_commit")
    assert task.spec.blocked_by == ("api_spec", "design_spec")
    assert task.spec.depends == ()
    assert (task.spec.quality_gate, task.spec.priority, task.status) == (False, 3, TaskStatus.PENDING)


@pytest.mark.parametrize("word", FIELDS)
def test_each_field_has_both_names(word: Any) -> None:
    value = {"flag": "true", "status": "failed", "number": "5"}.get(word.format, "x")
    english, _ = read_tasks(f"## T1: n\n- **{word.field}**: {value}\n")
    chinese, _ = read_tasks(f"## T1: n\n- **{word.chinese}**：{value}\n")
    assert english == chinese
    assert english != read_tasks("## T1: n\n")[0]


@pytest.mark.parametrize(
    "written",
    [
        "**Files**: src/a.py, `src/b.py`",
        "- **Files**: src/a.py, src/b.py",
        "**File**: src/a.py, src/b.py",
        "**Files**:\n- src/a.py\n- `src/b.py`",
        "**Files**:\n\n* src/a.py\n* src/b.py",
        "**Files:**\n  - src/a.py\n  - src/b.py",
        "- **Files**:\n  - src/a.py\n  - src/b.py",
        "- **files**: src/a.py\n  - src/b.py",
        "- **File**: src/a.py\n- **Files**: src/b.py",
    ],
)
def test_files_is_a_list_by_commas_or_by_bullets_and_survives_export_and_import(written: str) -> None:
    tasks, _ = read_tasks(f"## T1: n\n\n{written}\n\n**phase**: api\n")
    assert tasks[0].spec == TaskSpec("T1", "n", "api", ("src/a.py", "src/b.py"))
    for chinese in (False, True):
        exported = write_tasks([Task(tasks[0].spec)], chinese=chinese)
        assert read_tasks(exported)[0][0].spec == tasks[0].spec


def test_a_bullet_beside_a_field_that_is_a_bullet_itself_is_no_item_of_it() -> None:
    tasks, _ = read_tasks("## T1: n\n- **Files**: src/a.py\n- look at the style guide\n")
    assert tasks[0].spec.files == ("src/a.py",)


@pytest.mark.parametrize(("word", "status"), STATUS_NAMES.items())
def test_each_status_word_is_known(word: str, status: TaskStatus) -> None:
    assert read_tasks(f"## T1: n\n**状态**: {word}\n")[0][0].status is status


@pytest.mark.parametrize(
    ("markdown", "line", "message"),
    [
        ("", 1, "there is no task"),
        ("# title\nprose\n", 1, "there is no task"),
        ("## T1: a\n\n## T2 no colon\n", 3, "needs a colon"),
        ("## T1: a\n- **colour**: red\n", 2, "unknown field 'colour'"),
        ("## T1: a\n- **phase**: 1\n- **阶段**: 2\n", 3, "stands twice"),
        ("## T1: a\n- **quality_gate**: perhaps\n", 2, "neither yes nor no"),
        ("## T1: a\n- **status**: lost\n", 2, "is no status"),
        ("## T1: a\n- **priority**: high\n", 2, "not a number"),
    ],
)
def test_an_error_names_its_line(markdown: str, line: int, message: str) -> None:
    ((field, description),) = problems_in(markdown)
    assert field == f"markdown:{line}"
    assert description.startswith(f"line {line}: ")
    assert message in description


def test_all_errors_are_told_at_once() -> None:
    assert [field for field, _ in problems_in("## T1: a\n**x**: 1\n**y**: 2\n## T2\n")] == [
        "markdown:2",
        "markdown:3",
        "markdown:4",
    ]


WRONG = """\
## T1: a
- **status**: lost
- **depends**: T2
## T2: b
- **depends**: T1, T9
- **file**: ../secret
- **status**: dnoe
## T3: c
- **depends**: T4
## T4 no colon
- **priority**: high
## T3: c again
- **blocked_by**: all
"""


def test_a_tasks_file_is_told_everything_that_is_wrong_with_it_at_once() -> None:
    request = reading_pb2.ImportTasksRequest(workflow_id=ID, markdown=WRONG)
    found = {(one.field, one.description) for one in Flow().refused(import_tasks(request)).violations}
    assert {(field, description[:30]) for field, description in found} == {
        ("markdown:2", "line 2: task 'T1', field 'stat"),
        ("markdown:7", "line 7: task 'T2', field 'stat"),
        ("markdown:10", "line 10: a task heading needs "),
        ("markdown:11", "line 11: task 'T4', field 'pri"),
        ("markdown:1.depends", "task 'T1': cycle T1 → T2 → T1"),
        ("markdown:4.depends", "task 'T2': there is no task 'T"),
        ("markdown:4.files", "task 'T2': path '../secret' mu"),
        ("markdown:12.task_id", "task 'T3': this id is used twi"),
        ("markdown:12.blocked_by", "task 'T3': dependency 'all' mu"),
    }


def test_a_cycle_is_told_beside_an_id_that_is_used_twice() -> None:
    refusal = Flow().refused(commands.UpsertPlan(ID, tasks=planned(spec("a", "b"), spec("b", "a"), spec("a"))))
    assert [one.field for one in refusal.violations] == ["tasks[2].task_id", "tasks[0].depends"]


def test_a_tasks_file_that_cannot_be_read_is_refused_beside_a_completed_state_too() -> None:
    state = json.dumps({"project_id": "w1", "status": "completed"})
    request = reading_pb2.ImportStateRequest(state_json=state, tasks_markdown="## T1: a\n- **status**: lost\n")
    imported = read_state(request.state_json, "", NOON)
    assert [one.field for one in Flow().refused(import_state(request, imported)).violations] == ["markdown:2"]


def test_problems_of_the_plan_name_the_line_of_the_task() -> None:
    tasks, places = read_tasks("intro\n\n## T1: a\n- **depends**: T9\n")
    refusal = Flow().refused(commands.UpsertPlan(ID, tasks=tasks, places=places))
    assert refusal.violations[0].field == "markdown:3.depends"


def test_fields_before_a_task_and_in_other_sections_are_prose() -> None:
    (task,), _ = read_tasks("**phase**: x\n## T1: a\n### notes\n**phase**: y\n## Background\n**colour**: red\n")
    assert task.spec.phase == "y"


LINE = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=30).map(str.strip)
WORD = st.from_regex(r"[A-Za-z0-9_.-]{1,10}", fullmatch=True).filter(lambda word: word.lower() not in ("-", "none"))
ITEM = LINE.filter(bool)
SPECS = st.builds(
    TaskSpec,
    task_id=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,8}", fullmatch=True),
    name=ITEM,
    phase=LINE,
    files=st.lists(ITEM, max_size=3).map(tuple),
    actions=st.lists(ITEM, max_size=3).map(tuple),
    depends=st.lists(WORD, max_size=3).map(tuple),
    blocked_by=st.lists(WORD, max_size=3).map(tuple),
    quality_gate=st.booleans(),
    threshold=LINE,
    leverage=LINE,
    design_ref=LINE,
    requirement=st.lists(LINE, max_size=3).map("\n".join).map(str.strip),
    priority=st.integers(0, 1000),
)
TASKS = st.builds(Task, SPECS, st.sampled_from(TaskStatus))


@pytest.mark.parametrize("text", ["a<br>b", "a\nb<br>", r"<\br>", "<br>\nb", r"<\\br><br>"])
def test_a_break_that_stands_in_the_text_is_no_line_break(text: str) -> None:
    task = Task(spec("T1", requirement=text))
    assert read_tasks(write_tasks([task]))[0][0].spec == task.spec


@settings(max_examples=300, deadline=None)
@given(st.lists(TASKS, min_size=1, max_size=4), st.booleans())
def test_what_is_written_reads_back_as_the_same_plan(tasks: list[Task], chinese: bool) -> None:
    planned, _ = read_tasks(write_tasks(tasks, chinese=chinese))
    assert [one.spec for one in planned] == [task.spec for task in tasks]
    assert [one.status for one in planned] == [task.status for task in tasks]


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("#T1:* \n-阶段phase`,：x"), max_size=80))
def test_any_text_is_read_or_refused_with_lines(text: str) -> None:
    try:
        read_tasks(text)
    except Refusal as refusal:
        assert all(violation.field.startswith("markdown:") for violation in refusal.violations)  # noqa: PT017
