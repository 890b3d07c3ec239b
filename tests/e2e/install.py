"""Install a browser for the tests of the console where none is found: `python -m tests.e2e.install [--package]`.

With `--package` the distribution's Chromium, where this user may install it; else Playwright's own, into the virtual
environment. It never fails: without a browser the tests are skipped, and say so.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.helpers.limits import scaled

MISSING = "NO CHROMIUM: the console is not tested here; install the distribution's package `chromium`"
NAMES = ("chromium", "chromium-browser", "google-chrome")
DOWNLOADED = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", Path(sys.prefix) / "browsers"))
INSTALL_SECONDS = 600
APT = ["apt-get", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20", "-o", "DPkg::Lock::Timeout=60"]


def system_browser() -> str | None:
    """The distribution's browser."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def has_downloaded() -> bool:
    """Whether Playwright has downloaded one completely."""
    return any(DOWNLOADED.glob("chromium*/INSTALLATION_COMPLETE"))


def install_package() -> None:
    """Install the distribution's package as root, or with a sudo that asks for no password."""
    prefix = _as_root()
    if prefix is None or shutil.which("apt-get") is None:
        return
    if _succeeds([*prefix, *APT, "install", "-y", "--no-install-recommends", "chromium"]):
        return
    if _succeeds([*prefix, *APT, "update"]):
        _succeeds([*prefix, *APT, "install", "-y", "--no-install-recommends", "chromium"])


def download() -> None:
    """Download Playwright's headless browser, and delete it where it does not start."""
    command = [sys.executable, "-m", "playwright", "install", "--only-shell", "chromium"]
    if _succeeds(command, PLAYWRIGHT_BROWSERS_PATH=str(DOWNLOADED)) and not _starts():
        shutil.rmtree(DOWNLOADED)


def _as_root() -> list[str] | None:
    if os.geteuid() == 0:
        return []
    return ["sudo", "-n"] if shutil.which("sudo") and _succeeds(["sudo", "-n", "true"]) else None


def _starts() -> bool:
    shells = [path for path in DOWNLOADED.rglob("*headless*shell") if path.is_file()]
    return any(_succeeds([str(path), "--version"]) for path in shells)


def _succeeds(command: list[str], **environment: str) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", **environment}
    try:
        with Path(os.devnull).open("r+b") as nothing:
            streams = {"stdin": nothing, "stdout": nothing, "stderr": nothing}
            subprocess.run(command, check=True, env=environment, timeout=scaled(INSTALL_SECONDS), **streams)  # type: ignore[call-overload]
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def main() -> None:
    """Look for a browser, install one if there is none, and say what came of it."""
    if system_browser() or has_downloaded():
        return
    print("no Chromium here: installing one for the tests of the console", flush=True)
    if "--package" in sys.argv:
        install_package()
    if not system_browser():
        download()
    if not (system_browser() or has_downloaded()):
        print("it could not be installed: the tests of the console will be skipped", flush=True)


if __name__ == "__main__":
    main()
