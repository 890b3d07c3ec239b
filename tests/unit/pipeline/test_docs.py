"""The tables of docs/concepts/pipeline.md are printed from the data: `python -m tests.unit.pipeline.test_docs` renews them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pointsman.services.pipeline.domain import dag, delegation, reflection, route
from pointsman.services.pipeline.domain.decision import CLEAN_UP_SECONDS
from pointsman.services.pipeline.domain.enums import LIVE, Correction, PipelineStatus, StopReason
from pointsman.services.pipeline.domain.events import EVENTS
from pointsman.services.pipeline.domain.model import DEFAULT_BARRIER_TIMEOUT_SECONDS
from pointsman.services.pipeline.domain.template_choice import RULES
from pointsman.services.pipeline.domain.templates import TEMPLATES, template_graph
from pointsman.services.pipeline.domain.transitions import TRANSITIONS
from pointsman.services.pipeline.formats import route_marker

PAGE = Path(__file__).resolve().parents[3] / "docs" / "concepts" / "pipeline.md"

CORRECTIONS: Mapping[Correction, tuple[str, str]] = {
    Correction.OLD_VERDICT: ("an old `PIPELINE_VERDICT` and no route", "taken, and said so"),
    Correction.VERDICT_REPAIRED: ("a verdict that is neither PASS nor FAIL", "PASS; degraded in a QUALITY stage"),
    Correction.ROUTE_REPAIRED: ("a route that is none", "NEXT after PASS, DEV after FAIL"),
    Correction.SEVERITY_REPAIRED: ("a FAIL without severity", "MEDIUM"),
    Correction.HINT_CUT: ("a long hint", "cut"),
    Correction.CONTEXT_FILE_DROPPED: ("a long context_file", "dropped"),
    Correction.BARRIER_GROUP_DROPPED: ("a long barrierGroup", "dropped"),
    Correction.PASS_CANNOT_RETURN: ("PASS and DEV", "NEXT"),
    Correction.FAIL_CANNOT_GO_ON: ("FAIL and NEXT, COMPLETE, or BARRIER without one", "back to on_fail"),
    Correction.FORCED_ON: ("the same, or DEV, with nowhere to go back to", "NEXT; the FAIL stays"),
    Correction.COMPLETE_BEFORE_THE_END: ("COMPLETE before the last stage", "NEXT"),
    Correction.NO_SUCH_BARRIER: ("BARRIER without a barrier", "NEXT, with FAIL on_fail"),
    Correction.NO_DEV_STAGE: ("DEV without a DEV stage", "NEXT"),
    Correction.RETRY_EXHAUSTED: ("DEV with no retries left", "NEXT"),
    Correction.REPEATS_ITSELF: ("DEV in a stage with no DEV before it", "the same stage again"),
    Correction.BARRIER_MEMBER: ("anything but BARRIER from a member", "BARRIER"),
    Correction.NO_ROUTE: ("nothing", "see below"),
    Correction.CRASH_LIMIT: ("nothing, for the third time in a row", "PASS, degraded"),
    Correction.BARRIER_TIMEOUT: ("nothing before the barrier's time was over", "timed out, or a person decides"),
}


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in row)} |" for row in lines)


def templates() -> str:
    def shape(template: str) -> str:
        graph = template_graph(template)
        steps: dict[tuple[str, ...], list[str]] = {}
        for node in graph.nodes:
            steps.setdefault(node.deps, []).append(node.stage)
        return " → ".join("{" + ", ".join(step) + "}" if len(step) > 1 else step[0] for step in steps.values()) or "–"

    rows = [(f"`{item.id}`", item.description, shape(item.id)) for item in TEMPLATES.values()]
    return table(("id", "for", "stages"), rows)


def classification() -> str:
    rows = [(number, rule.name, f"`{rule.template}`") for number, rule in enumerate(RULES, 1)]
    return table(("#", "rule", "template"), [*rows, (len(rows) + 1, "default", "`quick-dev`")])


def corrections() -> str:
    return table(("said", "becomes", "warning"), [(*words, f"`{code}`") for code, words in CORRECTIONS.items()])


def stop() -> str:
    notes = {
        StopReason.QUALITY_GATE_PASSED: ("PASS", "stops", "NEXT"),
        StopReason.MAX_RETRIES_EXHAUSTED: ("no retries left", "stops", "FORCE_NEXT"),
        StopReason.CONVERGENCE_STALL_OBSERVED: ("two rounds in a row with the same severity", "observed", "RETRY"),
        StopReason.SEVERITY_IMPROVING: ("the last round was less bad", "observed", "RETRY"),
        StopReason.SEVERITY_WORSENING: ("the last round was worse", "observed", "RETRY"),
        StopReason.RETRIES_LEFT: ("the first failure", "–", "RETRY"),
    }
    return table(("seen", "effect", "action", "reason"), [(*notes[reason], f"`{reason}`") for reason in StopReason])


def states() -> str:
    def after(status: PipelineStatus) -> str:
        targets = {target for pairs in TRANSITIONS.values() for source, target in pairs if source == status}
        return ", ".join(name for name in PipelineStatus if name in targets and name != status) or "–"

    rows = [(status, "no" if status in LIVE else "yes", after(status)) for status in PipelineStatus]
    return table(("state", "terminal", "can become"), rows)


def events() -> str:
    return table(("event", "says"), [(name, (kind.__doc__ or "").split("\n")[0]) for name, kind in EVENTS.items()])


def limits() -> str:
    rows = [
        ("transcript", f"{route_marker.MAX_TRANSCRIPT_CHARACTERS:,} characters"),
        ("marker", f"{route_marker.MAX_MARKER_CHARACTERS:,} characters"),
        ("unparsable markers that are tried", route_marker.MAX_UNPARSABLE),
        ("hint", f"{route.MAX_HINT_CHARACTERS} characters"),
        ("directive", f"under {delegation.MAX_DIRECTIVE_TOKENS} tokens (characters / 4)"),
        ("node context", f"under {delegation.MAX_NODE_CONTEXT_TOKENS} tokens"),
        ("reflection", f"{reflection.MAX_ROUNDS} rounds, {reflection.MAX_TOTAL_CHARACTERS:,} characters"),
        ("stages of a DAG", f"{dag.MAX_STAGES:,}"),
        ("retries of a stage", f"{dag.DEFAULT_MAX_RETRIES} unless the node says otherwise"),
        ("barrier timeout", f"{DEFAULT_BARRIER_TIMEOUT_SECONDS:.0f} seconds unless the pipeline says otherwise"),
        ("reports and reflections of an ended pipeline", f"{CLEAN_UP_SECONDS / 86400:.0f} days"),
    ]
    return table(("what", "limit"), rows)


TABLES: Mapping[str, Callable[[], str]] = {
    "templates": templates,
    "classification": classification,
    "corrections": corrections,
    "stop": stop,
    "states": states,
    "events": events,
    "limits": limits,
}


def renewed(text: str) -> str:
    """The page with every table printed anew."""
    for name, make in TABLES.items():
        pattern = rf"(<!-- table: {name} -->\n).*?(<!-- end -->)"
        text, count = re.subn(pattern, lambda match: f"{match[1]}{make()}\n{match[2]}", text, flags=re.DOTALL)  # noqa: B023
        assert count == 1, name
    return text


def test_the_tables_of_the_page_are_current() -> None:
    text = PAGE.read_text()
    assert renewed(text) == text, "run `python -m tests.unit.pipeline.test_docs`"


def test_every_correction_is_explained() -> None:
    assert set(CORRECTIONS) == set(Correction)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
