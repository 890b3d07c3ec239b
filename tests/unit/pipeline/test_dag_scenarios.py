"""Seed 004: templates become DAGs; own DAGs are validated; classification names its rule."""

import pytest

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.pipeline.domain.dag import Node, build_graph, kind_of
from pointsman.services.pipeline.domain.enums import StageKind
from pointsman.services.pipeline.domain.template_choice import RULE_NAMES, classify
from pointsman.services.pipeline.domain.templates import TEMPLATES, template_graph, template_named, template_to_dag

DEV, REVIEW = StageKind.DEV, StageKind.REVIEW


def test_the_standard_pipeline_has_a_barrier() -> None:
    graph = template_to_dag(["PLAN", "ARCH", "DEV", "REVIEW", "TEST", "DOCS"])
    for stage in ("REVIEW", "TEST"):
        node = graph.node(stage)
        assert (node.barrier, node.on_fail, node.max_retries, node.next) == ("post-dev", "DEV", 3, ("DOCS",))
    assert graph.node("DOCS").deps == ("REVIEW", "TEST")


def test_the_fix_pipeline_has_no_barrier() -> None:
    (node,) = template_to_dag(["DEV"]).nodes
    assert (node.stage, node.on_fail, node.barrier, node.next, node.deps) == ("DEV", None, None, (), ())


def test_the_test_first_pipeline_is_a_sequence() -> None:
    graph = template_to_dag(["TEST", "DEV", "TEST"])
    assert [node.stage for node in graph.nodes] == ["TEST:write", "DEV", "TEST:verify"]
    assert all(node.barrier is None for node in graph.nodes)
    assert graph.node("TEST:verify").on_fail == "DEV"
    assert graph.node("TEST:write").on_fail is None


def test_the_full_pipeline_has_two_barriers() -> None:
    graph = template_graph("full")
    assert graph.groups == {"post-dev": ("REVIEW", "TEST"), "post-qa": ("QA", "E2E")}
    assert graph.node("REVIEW").next == ("QA", "E2E")
    assert graph.node("E2E").deps == ("REVIEW", "TEST")
    assert graph.node("DOCS").deps == ("QA", "E2E")


def test_one_member_alone_is_no_barrier() -> None:
    assert template_graph("ui-only").groups == {}
    nodes = [Node("DEV", DEV), Node("REVIEW", REVIEW, deps=("DEV",), barrier="lone")]
    assert build_graph(nodes).node("REVIEW").barrier is None


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_stage_after_dev_returns_to_dev_and_no_other_does(template: str) -> None:
    graph = template_graph(template)
    for node in graph.nodes:
        assert node.on_fail == ("DEV" if node.stage in graph.after_dev else None)


def test_an_unknown_template_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Refusal) as refused:
        template_named("bogus")
    assert "quick-dev" in refused.value.violations[0].description


@pytest.mark.parametrize(
    ("nodes", "named", "problem"),
    [
        ([], "", "empty"),
        ([Node("DEV", DEV), Node("DEV", DEV)], "DEV", "taken"),
        ([Node("MERGED", DEV)], "MERGED", "taken"),
        ([Node("DEV", DEV, deps=("PLAN",))], "DEV", "not a stage"),
        ([Node("DEV", DEV, next=("DOCS",))], "DEV", "not a stage"),
        ([Node("DEV", DEV, on_fail="PLAN")], "DEV", "unknown on_fail"),
        ([Node("A", DEV, next=("B",)), Node("B", DEV, next=("A",))], "A", "cycle"),
        ([Node("S", DEV), Node("T", DEV, deps=("S", "T"))], "T", "cycle"),
        ([Node("A", DEV, next=("B",), on_fail="B"), Node("B", DEV)], "A", "before it"),
        ([Node("A", DEV, barrier="g"), Node("B", DEV, deps=("A",), barrier="g")], "B", "the same deps"),
        ([Node(f"DEV:{n}", DEV) for n in range(1001)], "DEV:1000", "more than 1000"),
        ([Node("J", DEV, deps=tuple(f"D{n:03}" for n in range(99))), *[Node(f"D{n:03}", DEV) for n in range(99)]],
         "J", "do not fit"),
    ],
)  # fmt: skip
def test_a_dag_that_cannot_run_is_refused_naming_the_node(nodes: list[Node], named: str, problem: str) -> None:
    with pytest.raises(Refusal) as refused:
        build_graph(nodes)
    assert refused.value.reason is Reason.INVALID_DAG
    assert refused.value.metadata["node"] == named
    assert problem in refused.value.metadata["problem"]


def test_an_edge_may_be_named_on_either_side() -> None:
    by_deps = build_graph([Node("A", DEV), Node("B", DEV, deps=("A",))])
    by_next = build_graph([Node("A", DEV, next=("B",)), Node("B", DEV)])
    both = build_graph([Node("A", DEV, next=("B",)), Node("B", DEV, deps=("A",))])
    assert by_deps.nodes == by_next.nodes == both.nodes
    assert by_deps.digest == both.digest


def test_a_thousand_stages_are_a_dag() -> None:
    nodes = [Node(f"DEV:{n}", DEV, deps=(f"DEV:{n - 1}",) if n else ()) for n in range(1000)]
    assert len(build_graph(nodes).after("DEV:0")) == 999


def test_the_kind_comes_from_the_id_or_is_refused() -> None:
    assert kind_of("TEST:write") is StageKind.TEST
    with pytest.raises(Refusal):
        kind_of("COOK")


@pytest.mark.parametrize(
    ("text", "template", "rule"),
    [
        ("do it [pipeline:full] please", "full", "explicit"),
        ("[PIPELINE:Quick-Dev] x", "quick-dev", "explicit"),
        ("update the README", "docs-only", "docs-only"),
        ("更新文件說明", "docs-only", "docs-only"),
        ("更新README", "docs-only", "docs-only"),
        ("READMEを更新", "docs-only", "docs-only"),
        ("請做code review一下", "review-only", "review-only"),
        ("Docs: fix typo in README", "docs-only", "docs-only"),
        ("fix a broken link in the docs", "docs-only", "docs-only"),
        ("修正README的錯字", "docs-only", "docs-only"),
        ("fix the bug that the docs describe", "fix", "small-fix"),
        ("修正文件裡說的問題", "quick-dev", "default"),
        ("readmes_old is slow", "quick-dev", "default"),
        ("please review this pull request", "review-only", "review-only"),
        ("use TDD for the parser", "test-first", "test-first"),
        ("close the SQL injection in login", "security", "security"),
        ("修補登入的安全漏洞", "security", "security"),
        ("build a new platform from scratch", "full", "large"),
        ("make the button blue", "ui-only", "ui"),
        ("fix a typo in the parser", "fix", "small-fix"),
        ("fix the login bug", "fix", "small-fix"),
        ("implement OAuth login", "standard", "feature"),
        ("新增匯出功能", "standard", "feature"),
        ("make it faster", "quick-dev", "default"),
        ("review the parser and fix what you find", "quick-dev", "default"),
        ("write docs and implement the feature", "standard", "feature"),
    ],
)
def test_classification_names_its_rule(text: str, template: str, rule: str) -> None:
    found = classify(text)
    assert (found.template, found.rule) == (template, rule)
    assert rule in RULE_NAMES


def test_an_answer_needs_no_pipeline_unless_one_is_named() -> None:
    assert classify("add a feature", answer_only=True).template == "none"
    assert classify("why? [pipeline:fix]", answer_only=True).template == "fix"


def test_an_unknown_explicit_pipeline_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Refusal) as refused:
        classify("[pipeline:bogus] x")
    assert "standard" in refused.value.violations[0].description


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_can_be_named(template: str) -> None:
    assert classify(f"x [pipeline:{template}]").template == template
