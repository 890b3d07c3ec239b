"""The tables of the router store, version by version."""
