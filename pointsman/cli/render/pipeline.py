"""Pipelines as lines of text: a DAG with the states of its stages, a delegation in one line."""

from pointsman.api.pipeline.v1 import state_pb2 as sp

SIGNS = {
    sp.STAGE_STATUS_PENDING: ("·", "2"),
    sp.STAGE_STATUS_READY: ("○", "36"),
    sp.STAGE_STATUS_ACTIVE: ("●", "33"),
    sp.STAGE_STATUS_PASSED: ("✓", "32"),
    sp.STAGE_STATUS_FAILED: ("✗", "31"),
    sp.STAGE_STATUS_SKIPPED: ("↷", "35"),
    sp.STAGE_STATUS_TIMED_OUT: ("⏱", "31"),
    sp.STAGE_STATUS_ESCALATED: ("!", "31"),
}
"""The sign of each state, and its colour on a terminal."""


def live_line(delegation: sp.Delegation) -> str:
    """A stage that is, or may be, delegated."""
    if not delegation.delegation_id:
        return f"  {delegation.stage} waits to be delegated"
    return f"  {delegation.delegation_id} -> {delegation.agent_id}: {delegation.directive}"


def draw(pipeline: sp.Pipeline, *, colours: bool) -> str:
    """A pipeline from top to bottom; each line has the stages that can run in parallel."""
    summary = pipeline.summary
    state = sp.PipelineState.Name(summary.state).removeprefix("PIPELINE_STATE_")
    title = f"{summary.pipeline_id}  {state}  {summary.finished_count}/{summary.stage_count}  {summary.template}"
    lines = [title.rstrip()]
    for step in _steps(pipeline):
        lines.append("  │" if len(lines) > 1 else "")
        lines.append("  " + "   ".join(_stage(stage, colours=colours) for stage in step))
    risks = [
        f"{risk.stage} ({sp.RiskKind.Name(risk.kind).removeprefix('RISK_KIND_')})" for risk in pipeline.residual_risks
    ]
    if risks:
        lines += ["", f"not proven: {', '.join(risks)}"]
    return "\n".join(lines)


def _steps(pipeline: sp.Pipeline) -> list[list[sp.Stage]]:
    depth: dict[str, int] = {}
    left = list(pipeline.stages)
    while left:
        ready = [stage for stage in left if all(dep in depth for dep in stage.node.deps)]
        for stage in ready:
            depth[stage.node.stage] = 1 + max((depth[dep] for dep in stage.node.deps), default=-1)
        left = [stage for stage in left if stage.node.stage not in depth]
    steps: list[list[sp.Stage]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for stage in pipeline.stages:
        steps[depth[stage.node.stage]].append(stage)
    return steps


def _stage(stage: sp.Stage, *, colours: bool) -> str:
    sign, colour = SIGNS[stage.status]
    marks = [f"{stage.retries} retries"] if stage.retries else []
    marks += ["degraded"] if stage.degraded else []
    marks += [f"by {stage.agent_id}"] if stage.status == sp.STAGE_STATUS_ACTIVE else []
    marks += [f"in {stage.node.barrier_group}"] if stage.node.barrier_group else []
    text = f"{sign} {stage.node.stage}" + (f" ({', '.join(marks)})" if marks else "")
    return f"\x1b[{colour}m{text}\x1b[0m" if colours else text
