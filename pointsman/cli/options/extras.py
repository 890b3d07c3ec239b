"""Extras of the distribution: what is installed, and how to install what is not."""

import importlib.util
from collections.abc import Mapping

from pointsman.cli.options.usage import fail_usage

MODULES: Mapping[str, str] = {"mcp": "mcp", "acp": "acp"}
"""The extras, and a module that each brings."""


def is_installed(extra: str) -> bool:
    """Whether what the extra brings can be imported."""
    return importlib.util.find_spec(MODULES[extra]) is not None


def how_to_install(extra: str) -> str:
    """What to type."""
    return f"pip install 'pointsman[{extra}]'"


def require_extra(extra: str) -> None:
    """Ends the command where the extra is not installed."""
    if not is_installed(extra):
        fail_usage(f"this needs the extra '{extra}', which is not installed: {how_to_install(extra)}")
