"""Install a browser for the tests of the console where none is found: `python -m tests.e2e.install [--package]`.

With `--package` the distribution's Chromium, where this user may install it; else Playwright's own, into the virtual
environment. It never fails: without a browser the tests are skipped, and say so.
"""

import os
import shutil
import sys
from pathlib import Path

from tests.helpers.packages import install_package, succeeds

MISSING = "NO CHROMIUM: the console is not tested here; install the distribution's package `chromium`"
NAMES = ("chromium", "chromium-browser", "google-chrome")
DOWNLOADED = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", Path(sys.prefix) / "browsers"))


def system_browser() -> str | None:
    """The distribution's browser."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def has_downloaded() -> bool:
    """Whether Playwright has downloaded one completely."""
    return any(DOWNLOADED.glob("chromium*/INSTALLATION_COMPLETE"))


def download() -> None:
    """Download Playwright's headless browser, and delete it where it does not start."""
    command = [sys.executable, "-m", "playwright", "install", "--only-shell", "chromium"]
    if succeeds(command, PLAYWRIGHT_BROWSERS_PATH=str(DOWNLOADED)) and not _starts():
        shutil.rmtree(DOWNLOADED)


def _starts() -> bool:
    shells = [path for path in DOWNLOADED.rglob("*headless*shell") if path.is_file()]
    return any(succeeds([str(path), "--version"]) for path in shells)


def main() -> None:
    """Look for a browser, install one if there is none, and say what came of it."""
    if system_browser() or has_downloaded():
        return
    print("no Chromium here: installing one for the tests of the console", flush=True)
    if "--package" in sys.argv:
        install_package(NAMES[0])
    if not system_browser():
        download()
    if not (system_browser() or has_downloaded()):
        print("it could not be installed: the tests of the console will be skipped", flush=True)


if __name__ == "__main__":
    main()
