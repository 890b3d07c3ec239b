"""Adapters: how a known test runner is made to report every test, and how its report is read.

What an adapter is stands in `adapters.toml`; readers of the formats stand beside it. Reporters are copied into a folder
outside the tree and are named by options and variables, so that no file of the tree decides what is reported. A runner
that no adapter knows counts by its exit code only.
"""
