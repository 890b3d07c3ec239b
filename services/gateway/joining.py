"""The console's modules as one script: a browser waits for one file instead of twenty, and nobody has to build anything."""

import re
from collections.abc import Mapping

IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z]+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
ALIAS = re.compile(r"(\w+) as (\w+)")


def joined(sources: Mapping[str, str], entry: str) -> str:
    """Every module that the entry needs, each in a function of its own, those that others need first."""
    ordered: dict[str, str] = {}
    _visit(entry, sources, ordered)
    return "\n".join(ordered.values())


def _visit(name: str, sources: Mapping[str, str], ordered: dict[str, str]) -> None:
    if name in ordered:
        return
    for found in IMPORT.finditer(sources[name]):
        _visit(found[2], sources, ordered)
    ordered[name] = _wrapped(name, sources[name])


def _wrapped(name: str, source: str) -> str:
    """What a module exports is what its function gives back; what it imports is taken from what others gave."""
    body = IMPORT.sub(_taken, source)
    exported = ", ".join(found[2] for found in EXPORT.finditer(body))
    return "\n".join((f"const from_{name} = (() => {{", EXPORT.sub(r"\1", body), f"return {{ {exported} }};", "})();"))


def _taken(found: re.Match[str]) -> str:
    names = ALIAS.sub(r"\1: \2", found[1])
    return f"const {{{names}}} = from_{found[2]};"
