"""Runs the command line: `python -m pointsman.cli`."""

from pointsman.cli import main

main()
