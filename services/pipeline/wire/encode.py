"""Domain values to messages."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.pipeline.v1 import pipeline_pb2 as pb
from pointsman.api.pipeline.v1 import requests_pb2 as rq
from pointsman.api.pipeline.v1 import route_pb2, state_pb2
from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.rpc import paging
from pointsman.services.pipeline.domain import commands
from pointsman.services.pipeline.domain.dag import Node
from pointsman.services.pipeline.domain.delegation import Delegation, context_handle, delegation_id, delegation_of
from pointsman.services.pipeline.domain.enums import RiskKind
from pointsman.services.pipeline.domain.model import ACTIVE, DEGRADED, READY, UNFINISHED, Head, Pipeline
from pointsman.services.pipeline.domain.retries import StopDecision
from pointsman.services.pipeline.domain.route import EffectiveRoute
from pointsman.services.pipeline.domain.templates import Template, template_graph
from pointsman.services.pipeline.domain.views import ListedPipeline, StoredPipeline, phase, risks
from pointsman.services.pipeline.wire import enums

MAX_PENDING_SHOWN = 64
CACHED_ROUTES = 256


def timestamp(time: datetime | None) -> Timestamp | None:
    """A time on the wire; None stays absent."""
    return None if time is None else paging.timestamp(to_us(time))


def delegation(value: Delegation) -> state_pb2.Delegation:
    """A delegation as an agent gets it."""
    return state_pb2.Delegation(
        delegation_id=value.delegation_id,
        stage=value.stage,
        kind=enums.STAGE_KIND.to_wire(value.kind),
        agent_id=value.agent_id,
        nonce=value.nonce,
        round=value.round,
        directive=value.directive,
        node_context_json=value.node_context,
        context_handles=value.context_handles,
        reflection_stages=value.reflection_stages,
        delegated_at=timestamp(value.delegated_at),
    )


def delegations(values: Iterable[Delegation]) -> list[state_pb2.Delegation]:
    """Delegations as agents get them."""
    return [delegation(value) for value in values]


@lru_cache(maxsize=CACHED_ROUTES)
def effective_route(route: EffectiveRoute) -> route_pb2.EffectiveRoute:
    """An effective route; cached, and copied into every response that has it."""
    return route_pb2.EffectiveRoute(
        verdict=enums.VERDICT.to_wire(route.verdict),
        route=enums.ROUTE_TARGET.to_wire(route.route),
        severity=enums.SEVERITY.to_wire(route.severity),
        context_file=route.context_file,
        hint=route.hint,
        barrier_group=route.barrier_group,
        source=enums.ROUTE_SOURCE.to_wire(route.source),
        warnings=[route_pb2.RouteWarning(code=warning.code, text=warning.text) for warning in route.warnings],
        degraded=route.degraded,
    )


def started(answer: commands.Answer) -> pb.StartPipelineResponse:
    """The response of StartPipeline."""
    return pb.StartPipelineResponse(
        pipeline_id=answer.pipeline_id, state=enums.PIPELINE_STATE.to_wire(answer.status), next=delegations(answer.next)
    )


def completed(answer: commands.CompletionAnswer) -> pb.CompleteStageResponse:
    """The response of CompleteStage."""
    return pb.CompleteStageResponse(
        disposition=enums.DISPOSITION.to_wire(answer.disposition),
        route=effective_route(answer.route) if answer.route else None,
        next=delegations(answer.next),
        state=enums.PIPELINE_STATE.to_wire(answer.status),
        stop=stop_decision(answer.stop) if answer.stop else None,
        residual_risks=residual_risks(answer.risks),
        barrier_due_at=timestamp(answer.barrier_due_at),
    )


def stop_decision(stop: StopDecision) -> pb.StopDecision:
    """Whether retries stop, and why."""
    return pb.StopDecision(stop=stop.stop, reason=stop.reason, action=stop.action, note=stop.note)


def residual_risks(found: Iterable[tuple[str, RiskKind]]) -> list[state_pb2.ResidualRisk]:
    """Residual risks of stages."""
    return [state_pb2.ResidualRisk(stage=stage, kind=enums.RISK_KIND.to_wire(kind)) for stage, kind in found]


def node(value: Node) -> state_pb2.Node:
    """A node of a DAG."""
    return state_pb2.Node(
        stage=value.stage,
        kind=enums.STAGE_KIND.to_wire(value.kind),
        deps=value.deps,
        next=value.next,
        on_fail=value.on_fail or "",
        max_retries=value.max_retries,
        barrier_group=value.barrier or "",
    )


def template(value: Template) -> state_pb2.Template:
    """A template with its DAG."""
    nodes = [node(item) for item in template_graph(value.id).nodes]
    return state_pb2.Template(id=value.id, description=value.description, nodes=nodes)


def summary(pipeline_id: str, head: Head, created_at: datetime, updated_at: datetime) -> state_pb2.PipelineSummary:
    """A pipeline without its stages."""
    return state_pb2.PipelineSummary(
        pipeline_id=pipeline_id,
        state=enums.PIPELINE_STATE.to_wire(head.status),
        run_id=head.settings.run_id,
        template=head.settings.template,
        stage_count=len(head.marks),
        finished_count=sum(mark not in UNFINISHED for mark in head.marks),
        created_at=timestamp(created_at),
        updated_at=timestamp(updated_at),
    )


def pipeline_page(listed: Sequence[ListedPipeline], limit: int) -> rq.ListPipelinesResponse:
    """A page of pipelines; there is another page if one more than the limit is given."""
    shown = listed[:limit]
    token = paging.page_token(to_us(shown[-1].created_at), shown[-1].pipeline_id) if len(listed) > limit else ""
    summaries = [summary(item.pipeline_id, item.head, item.created_at, item.updated_at) for item in shown]
    return rq.ListPipelinesResponse(pipelines=summaries, next_page_token=token)


def pipeline(stored: StoredPipeline) -> state_pb2.Pipeline:
    """A pipeline as a whole."""
    state, head = stored.pipeline, stored.pipeline.head
    shown = state_pb2.Pipeline(
        summary=summary(stored.pipeline_id, head, stored.created_at, stored.updated_at),
        stages=[stage(state, item) for item in state.graph.nodes],
        barriers=[barrier(state, group) for group in state.graph.groups],
        pipeline_active=state.is_live(),
        phase=enums.PHASE.to_wire(phase(state)),
        active_delegations=[delegation(delegation_of(state, name)) for name in state.marked(ACTIVE)],
        pending_delegations=[delegation(delegation_of(state, name)) for name in _pending(state)[:MAX_PENDING_SHOWN]],
        pending_returns=head.returns,
        policy=enums.POLICY.to_wire(head.settings.policy),
        require_nonce=head.settings.require_nonce,
        residual_risks=residual_risks(risks(state)),
        seq=stored.seq,
    )
    shown.barrier_timeout.FromNanoseconds(int(head.settings.barrier_timeout_seconds * 1_000_000_000))
    return shown


def _pending(state: Pipeline) -> list[str]:
    """The ready stages, pending returns first: that is the order in which they can be delegated."""
    return sorted(state.marked(READY), key=lambda name: name not in state.head.returns)


def stage(state: Pipeline, item: Node) -> state_pb2.Stage:
    """One stage of a pipeline."""
    details = state.stages[item.stage]
    number = details.delegations
    rounds = [
        state_pb2.RetryRound(round=past.round, severity=enums.SEVERITY.to_wire(past.severity), at=timestamp(past.at))
        for past in details.history
    ]
    return state_pb2.Stage(
        node=node(item),
        status=enums.STAGE_STATUS.to_wire(state.status_of(item.stage)),
        verdict=enums.VERDICT.to_wire(details.verdict),
        severity=enums.SEVERITY.to_wire(details.severity),
        degraded=state.mark(item.stage) == DEGRADED,
        delegation_id=delegation_id(item.stage, number) if number else "",
        agent_id=details.agent_id,
        delegations=number,
        retries=details.retries,
        crashes=details.crashes,
        retry_history=rounds,
        context_handle=context_handle(item.stage) if state.has_report(item.stage) else "",
        has_reflection=bool(details.reflection),
    )


def barrier(state: Pipeline, group: str) -> state_pb2.Barrier:
    """One barrier of a pipeline."""
    members = state.graph.groups[group]
    arrived = [member for member in members if state.finished(member)]
    waiting = state.head.barriers.get(group)
    return state_pb2.Barrier(
        group=group,
        total=len(members),
        completed=arrived,
        next=state.graph.node(members[0]).next,
        resolved=waiting is None and len(arrived) == len(members),
        created_at=timestamp(waiting.created_at) if waiting else None,
        due_at=timestamp(waiting.due_at) if waiting else None,
    )
