"""Proves the invariants of all stores by reading them; run by `pointsman audit` and after every fault test."""
