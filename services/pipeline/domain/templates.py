"""The templates: named lists of stages, and how a list becomes a DAG."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from pointsman.services.chassis.core.errors import invalid_field
from pointsman.services.pipeline.domain.dag import Graph, Node, build_graph, kind_of
from pointsman.services.pipeline.domain.enums import StageKind

BARRIERS: Mapping[str, frozenset[StageKind]] = {
    "post-dev": frozenset({StageKind.REVIEW, StageKind.TEST}),
    "post-qa": frozenset({StageKind.QA, StageKind.E2E}),
}
"""The kinds that form a barrier wherever a template has both."""

NONE = "none"


@dataclass(frozen=True, slots=True)
class Template:
    """A named list of stages."""

    id: str
    description: str
    stages: tuple[str, ...]


TEMPLATES: Mapping[str, Template] = {
    template.id: template
    for template in (
        Template("full", "a large piece of work, from plan to documentation", tuple(str(kind) for kind in StageKind)),
        Template(
            "standard", "a feature with a plan and a structure", ("PLAN", "ARCH", "DEV", "REVIEW", "TEST", "DOCS")
        ),
        Template("quick-dev", "a change that needs no plan", ("DEV", "REVIEW", "TEST")),
        Template("fix", "a small repair", ("DEV",)),
        Template("test-first", "the test before the code", ("TEST:write", "DEV", "TEST:verify")),
        Template("ui-only", "something people see", ("DESIGN", "DEV", "QA")),
        Template("review-only", "an opinion about code that exists", ("REVIEW",)),
        Template("docs-only", "words, not code", ("DOCS",)),
        Template("security", "a change that must be safe", ("DEV", "REVIEW", "TEST")),
        Template(NONE, "a question: nothing to drive", ()),
    )
}


def template_named(template_id: str) -> Template:
    """The template of an id; an unknown id is refused with the known ones."""
    if template_id not in TEMPLATES:
        raise invalid_field("template", f"unknown template '{template_id[:64]}'; known are {', '.join(TEMPLATES)}")
    return TEMPLATES[template_id]


@cache
def template_graph(template_id: str) -> Graph:
    """The DAG of a template; the template `none` has an empty one."""
    stages = template_named(template_id).stages
    return template_to_dag(stages) if stages else Graph(())


def template_to_dag(stages: Sequence[str]) -> Graph:
    """A DAG of the stages one after the other; the members of a barrier run in parallel."""
    steps = _steps(_distinct(stages))
    nodes: list[Node] = []
    dev: str | None = None
    for number, step in enumerate(steps):
        deps = steps[number - 1] if number else ()
        following = steps[number + 1] if number + 1 < len(steps) else ()
        group = _group(step)
        nodes.extend(Node(stage, kind_of(stage), deps, following, dev, barrier=group) for stage in step)
        dev = next((stage for stage in step if kind_of(stage) is StageKind.DEV), dev)
    return build_graph(nodes)


def _distinct(stages: Sequence[str]) -> tuple[str, ...]:
    """Names a repeated stage `…:write` the first time and `…:verify` the second."""
    suffixes = {stage: iter(("write", "verify")) for stage in stages if stages.count(stage) == 2}
    return tuple(f"{stage}:{next(suffixes[stage])}" if stage in suffixes else stage for stage in stages)


def _steps(stages: Sequence[str]) -> list[tuple[str, ...]]:
    steps: list[tuple[str, ...]] = []
    for stage in stages:
        if steps and _group((*steps[-1], stage)) is not None:
            steps[-1] = (*steps[-1], stage)
        else:
            steps.append((stage,))
    return steps


def _group(step: Sequence[str]) -> str | None:
    kinds = frozenset(kind_of(stage) for stage in step)
    if len(kinds) < 2:
        return None
    return next((group for group, members in BARRIERS.items() if kinds <= members), None)
