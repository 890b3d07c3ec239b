"""Proofs against other people's software, outside the default run."""

from tests.helpers.loopback import trust_loopback

trust_loopback()
