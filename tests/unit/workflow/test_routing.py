"""Which outside dependencies a task seems to have, and which models should work together."""

import pytest

from pointsman.services.workflow.domain.collaboration import collaboration_for, route, side_of, size_of, word_count
from pointsman.services.workflow.domain.dependency_classes import classify_dependencies
from pointsman.services.workflow.domain.enums import Side, Size
from tests.unit.workflow.flow import spec

API, DESIGN = ("api_spec",), ("design_spec",)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add the user api", API),
        ("API client", API),
        ("userService", API),
        ("user-service", API),
        ("fetch orders", API),
        ("handle the request", API),
        ("HTTP retries", API),
        ("对接订单接口", API),
        ("实现服务层", API),
        ("polish the ui", DESIGN),
        ("UI 还原", DESIGN),
        ("列表样式", DESIGN),
        ("登录表单", DESIGN),
        ("卡片布局", DESIGN),
        ("ui for the api", (*API, *DESIGN)),
        ("rapid prototype", ()),
        ("build the guide", ()),
        ("capitalise names", ()),
        ("quick fix", ()),
        ("ui skeleton", ()),
        ("组件骨架", ()),
        ("mock ui", ()),
        ("stub of the form ui", ()),
    ],
)
def test_names_are_matched_as_words_in_latin_and_as_parts_in_chinese(name: str, expected: tuple[str, ...]) -> None:
    assert classify_dependencies(spec("t", name=name)) == expected


@pytest.mark.parametrize("word", ["api", "接口", "服务层", "service", "fetch", "request", "http"])
def test_every_api_word_of_the_seed_counts(word: str) -> None:
    assert classify_dependencies(spec("t", name=f"做 {word} 做")) == API


@pytest.mark.parametrize("word", ["ui", "样式", "组件", "还原", "视觉", "布局", "卡片", "弹窗", "表单"])
@pytest.mark.parametrize(
    ("also", "expected"), [("", DESIGN), ("骨架", ()), (" skeleton", ()), (" mock", ()), (" stub", ())]
)
def test_every_design_word_of_the_seed_counts(word: str, also: str, expected: tuple[str, ...]) -> None:
    assert classify_dependencies(spec("t", name=f"做 {word}{also}")) == expected


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("src/services/user.ts", API),
        ("src/api/user.ts", API),
        ("lib/http/client.ts", API),
        ("src/App.vue", DESIGN),
        ("src/Card.tsx", DESIGN),
        ("src/card.jsx", DESIGN),
        ("src/card.css", DESIGN),
        ("src/card.scss", DESIGN),
        ("src/components/card.ts", DESIGN),
        ("src/pages/home.ts", DESIGN),
        ("src/views/home.ts", DESIGN),
        ("src/pages/api/user.tsx", (*API, *DESIGN)),
        ("src/user.py", ()),
    ],
)
def test_files_are_matched_by_folder_and_ending(file: str, expected: tuple[str, ...]) -> None:
    assert classify_dependencies(spec("t", name="do it", files=(file,))) == expected


def test_a_skeleton_is_exempt_from_design_only() -> None:
    assert classify_dependencies(spec("t", name="skeleton", files=("src/api/Card.tsx",))) == API


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("add a login page", 4), ("添加登录页面", 3), ("添加 login 页面", 3), ("ログイン画面", 3)],
)
def test_chinese_text_is_not_one_word(text: str, count: int) -> None:
    assert word_count(text) == count


@pytest.mark.parametrize(
    ("size", "mode", "parallel"),
    [
        (Size.TRIVIAL, "none", ()),
        (Size.SMALL, "single", ()),
        (Size.MEDIUM, "dual", ("review",)),
        (Size.COMPLEX, "triple", ("analysis", "prototype", "review")),
    ],
)
@pytest.mark.parametrize(
    ("side", "lead"),
    [(Side.BACKEND, "codex"), (Side.FRONTEND, "gemini"), (Side.BOTH, "claude"), (Side.NEITHER, "claude")],
)
def test_size_decides_how_many_and_side_decides_who_leads(
    size: Size, mode: str, parallel: tuple[str, ...], side: Side, lead: str
) -> None:
    routed = route(size, side)
    assert (routed.mode, routed.parallel_phases) == (mode, parallel)
    assert routed.lead == ("" if size is Size.TRIVIAL else lead)
    assert len(routed.support) == {"none": 0, "single": 0, "dual": 1, "triple": 2}[mode]
    assert routed.lead not in routed.support
    assert 0 < routed.confidence <= 1


def test_a_small_task_on_both_sides_is_dual() -> None:
    text = "show the new api field on the order page and store it in the database"
    assert side_of(text) is Side.BOTH
    assert size_of(text, 1) is Size.SMALL
    assert collaboration_for(text, 1).mode == "dual"


@pytest.mark.parametrize(
    ("text", "tasks", "size"),
    [
        ("fix the typo", 1, Size.TRIVIAL),
        ("fix the typo", 2, Size.SMALL),
        ("rename the column created in the orders table", 1, Size.SMALL),
        ("rewrite the scheduler", 1, Size.MEDIUM),
        ("x", 3, Size.SMALL),
        ("x", 4, Size.MEDIUM),
        ("x", 10, Size.MEDIUM),
        ("x", 11, Size.COMPLEX),
        ("word " * 161, 1, Size.COMPLEX),
        ("migrate " + "word " * 60, 1, Size.COMPLEX),
        ("修" * 12, 1, Size.TRIVIAL),
        ("修" * 13, 1, Size.SMALL),
    ],
)
def test_size_follows_words_and_tasks(text: str, tasks: int, size: Size) -> None:
    assert size_of(text, tasks) is size


@pytest.mark.parametrize(
    ("text", "lead"),
    [
        ("complex backend task", "codex"),
        ("This is a complex task: show the form again", "gemini"),
        ("Complex: rename the column in the database", "codex"),
        ("a very complicated, cross-cutting change", "claude"),
        ("Rename the column. It’s really quite complex.", "claude"),
        ("complexity: high, rename the column", "claude"),
        ("这是一个复杂的后端任务", "codex"),
        ("这个需求非常复杂", "claude"),
        ("これは複雑なタスクです", "claude"),
    ],
)
def test_a_text_that_calls_itself_complex_gets_three_models(text: str, lead: str) -> None:
    routed = collaboration_for(text, 1)
    assert (routed.mode, routed.lead, routed.parallel_phases) == ("triple", lead, ("analysis", "prototype", "review"))
    assert routed.reason.startswith("complex")


@pytest.mark.parametrize(
    "text",
    [
        "parse complex numbers",
        "explain the complex regex",
        "this is not a complex task",
        "it isn't complex",
        "nothing complex: a small task",
        "这个任务不复杂",
        "このタスクは複雑ではない",
    ],
)
def test_a_text_that_calls_something_else_complex_or_denies_it_is_rated_by_its_words(text: str) -> None:
    assert size_of(text, 1) in (Size.TRIVIAL, Size.SMALL)
