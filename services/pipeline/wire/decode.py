"""Requests to commands and page keys."""

from pointsman.api.common.v1 import common_pb2
from pointsman.api.pipeline.v1 import pipeline_pb2 as pb
from pointsman.api.pipeline.v1 import requests_pb2 as rq
from pointsman.api.pipeline.v1 import route_pb2, state_pb2
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.rpc.paging import page_key, seconds_of
from pointsman.services.pipeline.domain import commands
from pointsman.services.pipeline.domain.dag import DEFAULT_MAX_RETRIES, Graph, Node, build_graph, kind_of
from pointsman.services.pipeline.domain.enums import (
    Policy,
    RouteSource,
)
from pointsman.services.pipeline.domain.model import Settings
from pointsman.services.pipeline.domain.route import ReportedRoute
from pointsman.services.pipeline.domain.templates import template_graph
from pointsman.services.pipeline.domain.views import PipelineCursor, PipelineFilter
from pointsman.services.pipeline.formats.route_marker import find_routes
from pointsman.services.pipeline.wire import enums


def start_command(
    request: pb.StartPipelineRequest, caller: Caller, pipeline_id: str, nonce_seed: str, barrier_timeout_seconds: float
) -> commands.StartPipeline:
    """The command of StartPipeline; the last argument is the barrier timeout if the request has none."""
    has_dag = request.WhichOneof("shape") == "dag"
    timeout = seconds_of(request.barrier_timeout)
    settings = Settings(
        run_id=request.run_id,
        template=request.template,
        policy=enums.POLICY.or_default(request.policy, Policy.SEED),
        require_nonce=request.require_nonce,
        barrier_timeout_seconds=timeout if request.HasField("barrier_timeout") else barrier_timeout_seconds,
        env=dict(request.env),
    )
    return commands.StartPipeline(
        entity_id=request.pipeline_id or pipeline_id,
        settings=settings,
        graph=graph(request.dag) if has_dag else template_graph(request.template),
        nonce_seed=nonce_seed,
        reflections={reflection.stage: reflection.body for reflection in request.reflections},
        auto=auto_delegate(request, caller),
    )


def graph(dag: state_pb2.Dag) -> Graph:
    """The validated DAG of a request."""
    return build_graph(
        Node(
            stage=node.stage,
            kind=enums.STAGE_KIND.to_domain(node.kind) or kind_of(node.stage),
            deps=tuple(node.deps),
            next=tuple(node.next),
            on_fail=node.on_fail or None,
            max_retries=node.max_retries if node.HasField("max_retries") else DEFAULT_MAX_RETRIES,
            barrier=node.barrier_group or None,
        )
        for node in dag.nodes
    )


def auto_delegate(
    request: pb.StartPipelineRequest | pb.CompleteStageRequest, caller: Caller
) -> commands.AutoDelegate | None:
    """The agents of the next stages, if the caller wants them delegated at once."""
    if not request.HasField("auto_delegate"):
        return None
    wanted = request.auto_delegate
    return commands.AutoDelegate(wanted.agent_id or caller.principal, dict(wanted.agents) if wanted.agents else {})


def delegate_command(request: pb.DelegateStageRequest, caller: Caller, nonce_seed: str) -> commands.DelegateStage:
    """The command of DelegateStage."""
    agent_id = request.agent_id or caller.principal
    return commands.DelegateStage(request.pipeline_id, request.stage, agent_id, nonce_seed, request.replace)


def complete_command(
    request: pb.CompleteStageRequest, caller: Caller, nonce_seed: str, report: commands.NewReport | None
) -> commands.CompleteStage:
    """The command of CompleteStage."""
    return commands.CompleteStage(
        entity_id=request.pipeline_id,
        delegation_id=request.delegation_id,
        agent_id=request.agent_id or caller.principal,
        nonce_seed=nonce_seed,
        reported=reported_routes(request),
        report=report,
        auto=auto_delegate(request, caller),
        tried_again=request.tried_again,
    )


def reported_routes(request: pb.CompleteStageRequest) -> tuple[ReportedRoute, ...]:
    """The routes that the agent reported: the typed one, or those of its transcript."""
    if request.WhichOneof("result") == "route":
        return (typed_route(request.route),)
    return find_routes(request.transcript)


def typed_route(route: route_pb2.Route) -> ReportedRoute:
    """A typed route as reported."""
    return ReportedRoute(
        source=RouteSource.TYPED,
        verdict=enums.VERDICT.to_domain(route.verdict),
        route=enums.ROUTE_TARGET.to_domain(route.route),
        severity=enums.SEVERITY.to_domain(route.severity),
        context_file=route.context_file or None,
        hint=route.hint or None,
        barrier_group=route.barrier_group or None,
        nonce=route.nonce or None,
    )


def put_command(request: rq.PutContextRequest, caller: Caller, report: commands.NewReport) -> commands.PutContext:
    """The command of PutContext."""
    agent_id = request.agent_id or caller.principal
    return commands.PutContext(request.pipeline_id, request.delegation_id, agent_id, report)


def list_filter(request: rq.ListPipelinesRequest) -> PipelineFilter:
    """The filter of ListPipelines."""
    return PipelineFilter(enums.PIPELINE_STATE.all_to_domain(request.states), request.run_id)


def cursor(page: common_pb2.Page) -> PipelineCursor | None:
    """The cursor of a page; None for the first page."""
    key = page_key(page.page_token, int, str)
    return PipelineCursor(int(key[0]), str(key[1])) if key else None
