"""The command line: `commands` use `session` (control plane, workers), `render` (output) and `options` (input)."""

import os

# gRPC reads it once, at its first import, and would log refused connections to the user's terminal.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
