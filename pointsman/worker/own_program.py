"""The `pointsman` command of an agent, and what it needs to see."""

import shlex
import sys
from pathlib import Path

import pointsman

LIBRARY = "lib"


def make_command(scratch: Path) -> Path:
    """Creates a folder with a `pointsman` command that works even where Pointsman is not installed."""
    folder = scratch / "bin"
    folder.mkdir()
    script = folder / "pointsman"
    packages = scratch / LIBRARY
    packages.mkdir()
    for package in _own_packages():
        (packages / package.name).symlink_to(package)
    code = f"import sys; sys.path.insert(0, {str(packages)!r}); from pointsman.cli.__main__ import main; main()"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(code)} "$@"\n')
    script.chmod(0o755)
    return folder


def own_program() -> tuple[Path, ...]:
    """What the `pointsman` command of an agent needs: the interpreter, its packages, and this one."""
    own, generated = _own_packages()
    return (Path(sys.prefix), Path(sys.base_prefix), own, own / "services", generated)


def _own_packages() -> tuple[Path, Path]:
    """This package and the one that its generated code imports; the folder around them may be the user's clone."""
    own = Path(pointsman.__file__).parent
    return own, own.parent / "buf"
