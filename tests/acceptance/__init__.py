"""Proofs against other people's software, outside the default run."""
