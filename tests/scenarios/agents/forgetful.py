"""A coder that fails at first, and works when it was told why it failed before."""

import os
import runpy
import sys
from pathlib import Path

told = (Path(os.environ["POINTSMAN_HANDOFF"]) / "prompt.md").read_text()
if "the disk is full" not in told:
    sys.exit("the disk is full")
runpy.run_path(str(Path(__file__).parent / "appender.py"))
