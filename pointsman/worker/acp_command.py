"""The command line of an agent that speaks the Agent Client Protocol: our client, which runs it inside the sandbox."""

import sys
from pathlib import Path

from pointsman.worker.workspace import AssignmentFolders

ACP = "acp"
_CODE = "import sys; sys.path.insert(0, {!r}); from pointsman.acp.bridge import main; main(sys.argv[1:])"


def bridged(command: list[str], folders: AssignmentFolders, library: Path) -> list[str]:
    """The client with the folders that the agent may ask it for, and the agent's own command."""
    places = map(str, (folders.tree, folders.handoff, folders.scratch))
    return [sys.executable, "-c", _CODE.format(str(library)), *places, "--", *command]
