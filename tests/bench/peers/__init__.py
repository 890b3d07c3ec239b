"""Other engines for durable work beside ours, each in an environment of its own: `make bench-peers`."""
