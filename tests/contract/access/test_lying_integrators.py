"""Integrators with true credentials that want work to count as landed, and agents that would like to be one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as runs
from pointsman.api.orchestrator.v1.landing_pb2_grpc import LandingServiceStub
from pointsman.services.chassis.core.errors import Reason
from pointsman.services.chassis.rpc.status import refusal_from
from tests.contract.access.guarded import guarded
from tests.contract.access.loopbacks import loopback
from tests.contract.access.test_stream_rights import enqueue_an_entry
from tests.scenarios.planes import Plane

TIP, OTHER = "1" * 40, "2" * 40
NAME = "box-integrator"
ENTRY = "entry_1"


async def refusal(call: Any) -> Reason:
    """Why a call was refused."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refusal_from(refused.value).reason


def landing_of(plane: Plane) -> Any:
    return LandingServiceStub(plane.channel)


def report(plane: Plane, epoch: int, **said: Any) -> Any:
    """Say something of the entry."""
    request = pb.ReportEntryRequest(
        request_id=f"report-{plane.request_id()}", entry_id=ENTRY, agent_id=NAME, epoch=epoch, **said
    )
    return landing_of(plane).ReportEntry(request)


def take(plane: Plane) -> pb.TakeEntriesRequest:
    return pb.TakeEntriesRequest(
        request_id=f"take-{plane.request_id()}", agent_id=NAME, repository_ids=["repository"], wait=Duration()
    )


CANDIDATE = pb.LandingCandidate(commit=TIP, tip=TIP, tree=TIP, base=OTHER)
LANDED, ELSEWHERE = pb.AtCommit(commit=TIP), pb.AtCommit(commit=OTHER)
BLOCKED = pb.LandingFinding(kind=pb.FINDING_KIND_BLOCKED, text="mine now")


def of_a_judge(plane: Plane) -> Mapping[str, Any]:
    """What an integrator is no operator, no judge and no author for."""
    named: dict[str, Any] = {"request_id": plane.request_id()}
    landing = landing_of(plane)
    wanted = {
        name: agent.Wanted(capabilities=[assignments.Capability.Value(f"CAPABILITY_{name}")])
        for name in ("CODE", "RESOLVE", "REVIEW", "VERIFY", "PLAN")
    }
    return {
        "enqueue": lambda: landing.Enqueue(
            pb.EnqueueRequest(**named, run_id="run_1", terms=pb.LandingTerms(target="m"))
        ),
        "approve": lambda: landing.AnswerEntry(
            pb.AnswerEntryRequest(**named, entry_id=ENTRY, reply=pb.ENTRY_REPLY_APPROVE)
        ),
        "cancel": lambda: landing.CancelEntry(pb.CancelEntryRequest(**named, entry_id=ENTRY)),
        "answer": lambda: plane.runs.CancelRun(runs.CancelRunRequest(**named, run_id="run_1")),
        **{
            name: lambda one=one: plane.agents.Poll(agent.PollRequest(**named, agent_id=NAME, wanted=one))
            for name, one in wanted.items()
        },
    }


def of_an_integrator(plane: Plane) -> Mapping[str, Any]:
    """What nobody but an integrator may do."""
    landing = landing_of(plane)
    named: dict[str, Any] = {"request_id": plane.request_id(), "agent_id": NAME}
    return {
        "take": lambda: landing.TakeEntries(take(plane)),
        "keep": lambda: landing.KeepQueue(pb.KeepQueueRequest(**named, queue_id="q", epoch=1)),
        "report": lambda: report(plane, 1, merged=LANDED),
        "snapshots": lambda: landing.ListSnapshots(pb.ListSnapshotsRequest(repository_id="repository")),
        "predict": lambda: landing.PutPredictions(pb.PutPredictionsRequest(request_id="p", repository_id="repository")),
        "wait": lambda: landing.WaitForForge(pb.WaitForForgeRequest(agent_id=NAME)),
    }


async def test_an_integrator_is_no_judge_and_nobody_else_is_an_integrator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with loopback(tmp_path, monkeypatch) as there:
        integrator = await there.acting_as(f"integrator/{NAME}")
        for what, call in of_a_judge(integrator).items():
            assert (what, await refusal(call())) == (what, Reason.PERMISSION_DENIED)
        for role in ("coder", "reviewer", "verifier", "planner", "operator"):
            other = await there.acting_as(f"{role}/{NAME}")
            for what, call in of_an_integrator(other).items():
                assert (role, what, await refusal(call())) == (role, what, Reason.PERMISSION_DENIED)


async def test_nothing_lands_that_was_not_proven_under_the_lease_of_who_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch) as there:
        await enqueue_an_entry(there)
        liar = await there.as_principal("mallory", "agent", capabilities=["integrate"])
        honest = await there.as_principal("ines", "agent", capabilities=["integrate"])
        foreign = await there.as_principal("fred", "agent", capabilities=["integrate"], project="theirs")
        assert await refusal(report(liar, 99, landed=LANDED)) is Reason.STATE_FORBIDS, "nobody has taken it"
        epoch = (await landing_of(honest).TakeEntries(take(honest))).epoch
        assert not (await landing_of(liar).TakeEntries(take(liar))).entries, "it is in other hands"
        lies: Mapping[str, Any] = {
            "proven": {"proven": CANDIDATE},
            "landed": {"landed": LANDED},
            "merged": {"merged": ELSEWHERE},
            "blocked": {"found": BLOCKED},
        }
        for what, said in lies.items():
            for claimed in (0, epoch, epoch + 1, 2**62):
                assert (what, claimed, await refusal(report(liar, claimed, **said))) == (
                    what,
                    claimed,
                    Reason.LEASE_LOST,
                )
            request = report_in_theirs(foreign, epoch, said)
            assert (what, await refusal(request)) == (what, Reason.NOT_FOUND)
        keep = pb.KeepQueueRequest(request_id="k", agent_id=NAME, queue_id="any", epoch=epoch, release=True)
        assert await refusal(landing_of(liar).KeepQueue(keep)) is Reason.LEASE_LOST
        assert await refusal(report(honest, epoch, landed=LANDED)) is Reason.STATE_FORBIDS, "nothing was proven"
        assert (await report(honest, epoch, proven=CANDIDATE)).entry.state == pb.ENTRY_STATE_LANDING
        assert await refusal(report(honest, epoch, landed=ELSEWHERE)) is Reason.STATE_FORBIDS, "another commit"
        assert await refusal(report(liar, epoch, landed=LANDED)) is Reason.LEASE_LOST
        assert (await report(honest, epoch, landed=LANDED)).entry.state == pb.ENTRY_STATE_LANDED


def report_in_theirs(plane: Plane, epoch: int, said: Mapping[str, Any]) -> Any:
    request = pb.ReportEntryRequest(
        request_id=f"report-{plane.request_id()}", entry_id=ENTRY, agent_id=NAME, epoch=epoch, **said
    )
    return landing_of(plane).ReportEntry(request, metadata=(("pointsman-project", "theirs"),))
