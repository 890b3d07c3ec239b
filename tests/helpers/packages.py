"""Packages of the distribution, installed where this user may: as root, or with a sudo that asks for no password.

`python -m tests.helpers.packages bubblewrap` installs one and never fails: without it the tests run at a lower isolation.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.helpers.limits import scaled

INSTALL_SECONDS = 600
APT = ["apt-get", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20", "-o", "DPkg::Lock::Timeout=60"]
PROGRAMS = {"bubblewrap": "bwrap"}


def install_package(name: str) -> None:
    """Install a package, after an update of the index if the first try fails."""
    prefix = _as_root()
    if prefix is None or shutil.which("apt-get") is None:
        return
    install = [*prefix, *APT, "install", "-y", "--no-install-recommends", name]
    if not succeeds(install) and succeeds([*prefix, *APT, "update"]):
        succeeds(install)


def succeeds(command: list[str], **environment: str) -> bool:
    """Whether a command ends with 0; its output is not shown."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", **environment}
    try:
        with Path(os.devnull).open("r+b") as nothing:
            streams = {"stdin": nothing, "stdout": nothing, "stderr": nothing}
            subprocess.run(command, check=True, env=environment, timeout=scaled(INSTALL_SECONDS), **streams)  # type: ignore[call-overload]
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def _as_root() -> list[str] | None:
    if os.geteuid() == 0:
        return []
    return ["sudo", "-n"] if shutil.which("sudo") and succeeds(["sudo", "-n", "true"]) else None


def main() -> None:
    """Install each named package whose program is missing, and say what came of it."""
    for name in sys.argv[1:]:
        program = PROGRAMS.get(name, name)
        if shutil.which(program) is None:
            print(f"no {program} here: installing {name}", flush=True)
            install_package(name)
            print(
                f"{name} is {'installed' if shutil.which(program) else 'not installed: tests go on without'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
