"""`python -m tests.robustness.abuse --requests 100000`: bad input over gRPC, and a tenth as much over HTTP; figures as JSON."""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from tests.robustness.abuse.campaign import Campaign, Findings
from tests.robustness.abuse.target import CREDENTIALS, target

ALLOWED_GROWTH_BYTES = 64 * 1024 * 1024


def abuse(requests: int, seed: int) -> Findings:
    """A whole campaign against new services."""
    with tempfile.TemporaryDirectory() as data, target(Path(data), CREDENTIALS) as process:
        campaign = Campaign(process, seed)
        asyncio.run(campaign.over_grpc(requests))
        asyncio.run(campaign.over_http(requests // 10))
        findings = campaign.findings
        if not process.is_alive:
            findings.problems.append("the process has died")
        for way, grown_bytes in (("gRPC", findings.grown_bytes), ("HTTP", findings.grown_bytes_over_http)):
            if grown_bytes > ALLOWED_GROWTH_BYTES:
                findings.problems.append(f"memory grew by {grown_bytes} bytes over {way}")
        findings.problems += ["the log has a stack trace"] if "Traceback" in process.log else []
        findings.problems += [f"not documented: {what}, {times} times" for what, times in findings.undocumented.items()]
        return findings


def main() -> int:
    """Print what was found; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.robustness.abuse")
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    begun = time.monotonic()
    findings = abuse(wanted.requests, wanted.seed)
    figures = {
        "codes": dict(findings.codes),
        "statuses": dict(findings.statuses),
        "undocumented": dict(findings.undocumented),
        "grown_bytes": findings.grown_bytes,
        "grown_bytes_over_http": findings.grown_bytes_over_http,
        "problems": findings.problems,
        "seconds": round(time.monotonic() - begun, 1),
    }
    print(json.dumps(figures, indent=1))
    return 1 if findings.problems else 0


if __name__ == "__main__":
    sys.exit(main())
