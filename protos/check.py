"""Checks that the committed code is what the protos generate, and that no released message was broken."""

import filecmp
import subprocess
import sys
import tempfile
from pathlib import Path

from generate import PLUGINS, PROTOS, generate

ROOT = PROTOS.parent


def drift() -> list[str]:
    """The generated files that differ from the committed ones, or are missing on either side."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        if generate(target) != 0:
            return ["protoc failed"]
        fresh = {path.relative_to(target) for path in target.rglob("*.py*")}
        committed = {
            path.relative_to(ROOT)
            for top in (ROOT / "pointsman" / "api", ROOT / "buf")
            for path in top.rglob("*.py*")
            if "__pycache__" not in path.parts
        }
        differing = {name for name in fresh & committed if not filecmp.cmp(target / name, ROOT / name, shallow=False)}
        return sorted(str(name) for name in differing | (fresh ^ committed))


def breaking() -> int:
    """Compare with the last release, once there is one."""
    tags = subprocess.run(
        ["git", "tag", "--list", "v*", "--sort=-v:refname"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    if not tags.stdout.strip():
        print("protos: nothing released yet, so nothing to break")
        return 0
    last = tags.stdout.split()[0]
    against = f"{ROOT / '.git'}#tag={last},subdir=protos"
    return subprocess.run([str(PLUGINS / "buf"), "breaking", str(PROTOS), "--against", against], check=False).returncode


if __name__ == "__main__":
    stale = drift()
    if stale:
        print("generated code is not what the protos say; run `make proto`:", *stale, sep="\n  ")
    sys.exit(bool(stale) or breaking())
