"""An agent of a test: takes a run's work and hands in a change with its diff."""

import hashlib
from collections.abc import AsyncIterator

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import artifact_pb2 as artifact
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from tests.scenarios.planes import Plane

CODER = "vm-coder"
DIFF = b"""diff --git a/src/parser.py b/src/parser.py
--- a/src/parser.py
+++ b/src/parser.py
@@ -1,2 +1,2 @@ def fields(s):
 # split
-    return s.split(",")
+    return [x.strip() for x in s.split(",")]
diff --git a/tests/test_parser.py b/tests/test_parser.py
new file mode 100644
--- /dev/null
+++ b/tests/test_parser.py
@@ -0,0 +1,1 @@
+def test_fields(): assert fields("a, b")
"""


async def take(plane: Plane, agent_id: str, run_id: str) -> agent.Lease:
    """Take the work of a coder in this run; others may have left theirs on the same control plane."""
    request = agent.PollRequest(request_id=plane.request_id(), agent_id=agent_id)
    request.wanted.capabilities.append(assignments.CAPABILITY_CODE)
    request.wanted.run_ids.append(run_id)
    request.wait.FromSeconds(50)
    leases: list[agent.Lease] = list((await plane.agents.Poll(request)).leases)
    return leases[0]


async def put_diff(plane: Plane, run_id: str) -> handoff.ArtifactRef:
    """Store the diff as a worker does."""
    ref = handoff.ArtifactRef(sha256=hashlib.sha256(DIFF).hexdigest(), size_bytes=len(DIFF), media_type="text/x-diff")

    async def parts() -> AsyncIterator[artifact.PutRequest]:
        yield artifact.PutRequest(start=artifact.PutStart(artifact=ref, run_id=run_id))
        yield artifact.PutRequest(chunk=DIFF)

    await plane.artifacts.Put(parts())
    return ref


async def hand_in(plane: Plane, run_id: str) -> None:
    """Take a coder's work, and hand in a change whose agent says that all is well."""
    lease = await take(plane, CODER, run_id)
    evidence = handoff.Evidence(id="E1", kind=handoff.EVIDENCE_KIND_COMMAND, command=["make", "check"], exit_code=0)
    claim = handoff.Claim(id="C1", statement="it works", evidence_ids=["E1"], criterion_ids=["T1-C1"])
    files = [handoff.ChangedFile(path=path, change=handoff.FILE_CHANGE_MODIFIED) for path in ("src/parser.py",)]
    made = handoff.CoderResult(claims=[claim], evidence=[evidence], changed_files=files)
    made.diff.CopyFrom(await put_diff(plane, run_id))
    stage = work.StageResult(route=work.StageRoute(verdict="PASS"), coder_result=made)
    key = agent.LeaseKey(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret)
    done = agent.CompleteRequest(request_id=plane.request_id(), agent_id=CODER)
    done.completions.append(agent.Completion(lease=key, stage=stage))
    (outcome,) = (await plane.agents.Complete(done)).outcomes
    assert outcome.accepted, outcome
