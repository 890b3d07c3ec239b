"""Ids that are made of other ids, at their longest."""

from pathlib import Path

import grpc

from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.workflow.v1.workflow_pb2_grpc import WorkflowServiceStub
from pointsman.services.chassis.core.ids import derived_id
from pointsman.services.orchestrator.domain.calls.workflow_status import ForwardAnswer
from pointsman.services.orchestrator.domain.enums import Reply
from pointsman.services.orchestrator.wire import encode
from tests.scenarios.planes import NOBODY, WISH, plane

LONGEST = 128


async def test_request_ids_that_differ_only_in_their_last_letter_start_two_runs(
    tmp_path: Path, database_url: str
) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        ids = ["r" * (LONGEST - 1) + end for end in "12"]
        requests_sent = [pb.SubmitRequest(request_id=one, message=f"{WISH} for {one[-1]}") for one in ids]
        started = [(await here.runs.Submit(request)).run.id for request in requests_sent]
        assert len(set(started)) == 2
        assert (await here.runs.Submit(requests_sent[0])).run.id == started[0]


def test_a_derived_id_reads_as_it_was_made_while_it_fits_and_is_never_another_ones() -> None:
    assert derived_id("submit-r1", LONGEST) == "submit-r1"
    assert derived_id("s" * LONGEST, LONGEST) == "s" * LONGEST
    long_ones = [derived_id("s" * LONGEST + end, LONGEST) for end in ("1", "2", "12")]
    assert len(set(long_ones)) == 3
    assert {len(one) for one in long_ones} == {LONGEST}


def test_phases_that_share_a_long_beginning_stay_two() -> None:
    specs = [encode.peers.task_spec(work.PlanTask(id="T1", name="n", phase="p" * 100 + end)) for end in "12"]
    assert specs[0].phase != specs[1].phase
    assert all(len(spec.phase) == 100 for spec in specs)


async def test_a_constraint_is_waived_by_its_whole_name_or_not_at_all() -> None:
    told = ForwardAnswer("c1", "epic_1", Reply.WAIVE, "h" * 64 + " and more", "")
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        stub = WorkflowServiceStub(channel)
        _, request = encode.peers.forwarded_answer(stub, told, {"request_id": "r", "workflow_id": "epic_1"})
    assert request.constraint_id == told.text
