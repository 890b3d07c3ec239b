"""Reporters that run inside a test process; each stands alone and is copied out before it is used."""
