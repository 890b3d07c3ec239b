"""The command line of an agent that speaks the Agent Client Protocol: our client, which runs it inside the sandbox."""

import sys
from pathlib import Path

from pointsman.acp.order import Order

ACP = "acp"
_CODE = "import sys; sys.path.insert(0, {!r}); from pointsman.acp.bridge import main; main(sys.argv[1:])"


def bridged(command: list[str], order: Order, library: Path) -> list[str]:
    """The client with its order, and the agent's own command."""
    return [sys.executable, "-c", _CODE.format(str(library)), order.line(), *command]
