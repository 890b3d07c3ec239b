"""The tables of the workflow context, version by version."""
