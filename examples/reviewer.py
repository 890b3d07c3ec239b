"""A reviewer in a few lines: it sends back every claim for which no command was run.

Start a control plane (`pointsman up`), then: python examples/reviewer.py. It finds the control plane of the data directory,
and shows a token of the role that it plays: the reviewer `example-reviewer`.
"""

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.worker import Job, Worker

worker = Worker("example")


@worker.reviewer
def review(job: Job) -> handoff.ReviewDecision:
    """Pass the work when every claim names a command that was run."""
    made = job.work.coder_result
    ran = {item.id for item in made.evidence if item.kind == handoff.EVIDENCE_KIND_COMMAND}
    unproven = [claim for claim in made.claims if not ran & set(claim.evidence_ids)]
    remarks = [handoff.Feedback(key=claim.id, statement=f"{claim.id}: run it") for claim in unproven]
    verdict = handoff.REVIEW_VERDICT_RETRY if remarks else handoff.REVIEW_VERDICT_PASS
    return handoff.ReviewDecision(decision=verdict, review_level=handoff.REVIEW_LEVEL_EXECUTOR, feedback=remarks)


if __name__ == "__main__":
    worker.main()
