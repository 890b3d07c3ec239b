"""Our servicers behind another gRPC server, measured beside ours: `make bench-servers`. The result is in docs/adr/0050."""
