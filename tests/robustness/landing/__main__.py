"""Play the campaign and print what came of it: `python -m tests.robustness.landing [--branches 50] [--seconds 60]`."""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from tests.robustness.landing.campaign import Terms, campaign


def main() -> int:
    """The figures as JSON; 1 where one of the promises is broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--branches", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=60, help="The least that a coder works.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(campaign(Path(folder), Terms(options.branches, options.seconds)))
    print(json.dumps(result.figures(), indent=1))
    return 1 if result.broken() else 0


sys.exit(main())
