"""The variables of a contained command: nothing of the worker's environment but what is named."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pointsman._shared.search_path import search_path

PASSED_ON = ("LANG", "LC_ALL", "TERM", "USER", "LOGNAME", "SHELL", "TZ")
PROOF_PASSED_ON = ("LANG", "LC_ALL", "TZ")
PROOF_SETTINGS = {"PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
TOOLCHAINS = {
    "RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv", "NVM_DIR": ".nvm", "ASDF_DATA_DIR": ".asdf", "SDKMAN_DIR": ".sdkman",
    "MISE_DATA_DIR": ".local/share/mise", "JAVA_HOME": "", "GOROOT": "",
}  # fmt: skip
"""Variables that say where a toolchain is, and where below the home it is without them."""


def toolchain_folders() -> dict[str, Path]:
    """The user's toolchains by their variable: a command with a private home would not find them there."""
    found = {
        name: Path(os.environ.get(name) or (Path.home() / place if place else "")) for name, place in TOOLCHAINS.items()
    }
    return {name: path for name, path in found.items() if path.is_absolute() and os.access(path, os.R_OK | os.X_OK)}


def clean_environment(extra: Mapping[str, str], passed_on: Sequence[str] = ()) -> dict[str, str]:
    """The variables that every command gets, those named in `passed_on`, and `extra`."""
    inherited = {name: os.environ[name] for name in (*PASSED_ON, *passed_on) if name in os.environ}
    return {**inherited, "PATH": search_path(), **extra}


def proof_environment(scratch: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of a proof: a home and a temporary folder below `scratch`, and Python that looks nowhere else.

    Gradle needs its home as an option: Java asks the system for the user's, and does not read HOME.
    """
    home, temporary = scratch / "home", scratch / "tmp"
    for folder in (home, temporary):
        folder.mkdir(parents=True, exist_ok=True)
    inherited = {name: os.environ[name] for name in PROOF_PASSED_ON if name in os.environ} | {"PATH": search_path()}
    private = {"HOME": str(home), "TMPDIR": str(temporary), "GRADLE_USER_HOME": str(home / ".gradle")}
    return {**inherited, **PROOF_SETTINGS, **private, **(extra or {})}
