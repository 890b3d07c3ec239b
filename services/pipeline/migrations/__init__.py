"""The tables of the pipeline store, version by version."""
