"""A control plane for swarms of coding agents: what users import, and the services behind it."""
