"""Where programs are looked for: never below the folder that a command is started in, which may be an agent's tree."""

import os
from pathlib import Path


def search_path() -> str:
    """The user's PATH without its relative entries, such as `.` or `node_modules/.bin`."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if Path(entry).is_absolute()) or os.defpath
