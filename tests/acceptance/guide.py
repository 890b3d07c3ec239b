"""`make guide`: the guide for another language from nothing: its Rust client, typed from the page, built and played.

The folder is empty and so is the cache of crates, unless a folder of an earlier run is named. Without cargo that is said
loudly, and the command ends with 0.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.scenarios.commands import ROOT, Running
from tests.scenarios.test_clients import BUF

PAGE = (ROOT / "docs" / "clients.md").read_text()
FILE = re.compile(r"^```(?:rust|toml)\n(?://|#) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ALLOWED_SECONDS = 600


def main(folder: Path) -> int:
    """Types, builds and plays, and says how long each step took."""
    if shutil.which("cargo") is None:
        sys.stdout.write("LEFT OUT: cargo is not installed\n")
        return 0
    begin = time.monotonic()
    for name, text in FILE.findall(PAGE):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    described = [BUF, "build", str(ROOT / "protos"), "--as-file-descriptor-set", "-o", str(folder / "api.binpb")]
    subprocess.run(described, check=True)
    caches = {"CARGO_HOME": str(folder / "cargo"), "CARGO_TARGET_DIR": str(folder / "target")}
    made = subprocess.run(["cargo", "build", "--quiet"], cwd=folder, env={**os.environ, **caches}, check=False)
    if made.returncode:
        sys.stderr.write(
            "cargo did not build the client; what it says is above (it needs a toolchain and a registry)\n"
        )
        return 1
    built = time.monotonic()
    _play(folder)
    ended = time.monotonic()
    sys.stdout.write(f"built in {built - begin:.0f} s, played in {ended - built:.0f} s, allowed {ALLOWED_SECONDS} s\n")
    return 0 if ended - begin <= ALLOWED_SECONDS else 1


def _play(folder: Path) -> None:
    """Submits and watches as the operator, until a coder's lease is taken as a coder."""
    data = {"POINTSMAN_DATA": str(folder / "data"), "HOME": str(folder / "home")}
    up = Running(("up", "--port", "0", "--no-crew"), data)
    client = folder / "target" / "debug" / "pointsman-guide"
    try:
        up.line_with(" up at ")
        watching = subprocess.Popen(_with_token("", f"{client}"), env=_environment(data), stdout=subprocess.PIPE)
        assert watching.stdout is not None
        first = watching.stdout.readline().decode()
        assert "submitted" in first, first
        worked = subprocess.run(
            _with_token("coder --agent box-1", f"{client} work"),
            env=_environment(data), capture_output=True, text=True, check=True,
        )  # fmt: skip
        watching.kill()
        watching.wait()
        sys.stdout.write(f"{first}{worked.stdout}")
        assert worked.stdout.startswith("leased run_"), worked.stderr
    finally:
        up.stop()


def _environment(data: dict[str, str]) -> dict[str, str]:
    return {**data, "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"}


def _with_token(role: str, command: str) -> list[str]:
    """The command with the variables that the guide sets."""
    return ["sh", "-ec", f'eval "$(pointsman token --env {role})"; exec {command}']


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(main(Path(sys.argv[1]).resolve()))
    with tempfile.TemporaryDirectory(prefix="pointsman-guide-") as made:
        sys.exit(main(Path(made)))
