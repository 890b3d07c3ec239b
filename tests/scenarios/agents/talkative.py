"""The coder of `appender`, which also says a lot: progress, a secret, and something for the terminal."""

import os
import runpy
from pathlib import Path

print("reads the task", flush=True)
print(f"uses {os.environ['BOX_KEY']} and ghp_0123456789abcdefghijABCDEFGHIJ")
print("\x1b[2J\x1b[1;1Heverything is fine", flush=True)
runpy.run_path(str(Path(__file__).parent / "appender.py"))
print("done")
