"""Bundles the console's modules into two scripts: what the first view needs, and the rest; no build step."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z]+)\.js";$', re.MULTILINE)
LATER = re.compile(r'\bimport\("\./([a-z]+)\.js"\)')
EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
ALIAS = re.compile(r"(\w+) as (\w+)")


@dataclass(frozen=True, slots=True)
class Bundle:
    """The script of the first view, and the one that it imports when somebody goes to another page."""

    first: str
    later: str


def bundle(sources: Mapping[str, str], entry: str, names: tuple[str, str]) -> Bundle:
    """The modules that the entry imports, dependencies first, each wrapped in a function; `names` are the two files."""
    first: dict[str, str] = {}
    _visit(entry, sources, first)
    wanted = list(dict.fromkeys(name for module in first for name in LATER.findall(sources[module])))
    every = dict(first)
    for name in wanted:
        _visit(name, sources, every)
    later = [name for name in every if name not in first]
    shared = sorted({found[2] for name in later for found in IMPORT.finditer(sources[name])} & first.keys())
    import_later = rf'import("./{names[1]}").then((all) => all.from_\1)'
    return Bundle(
        "\n".join((LATER.sub(import_later, "\n".join(first.values())), f"export {{ {_names(shared)} }};")),
        "\n".join(
            (
                f'import {{ {_names(shared)} }} from "./{names[0]}";',
                *(every[name] for name in later),
                f"export {{ {_names(wanted)} }};",
            )
        ),
    )


def _visit(name: str, sources: Mapping[str, str], ordered: dict[str, str]) -> None:
    if name in ordered:
        return
    for found in IMPORT.finditer(sources[name]):
        _visit(found[2], sources, ordered)
    ordered[name] = _wrapped(name, sources[name])


def compact(source: str) -> str:
    """A module without indentation and lines of comment; no text of a module goes over several lines."""
    lines = (line.strip() for line in source.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _wrapped(name: str, source: str) -> str:
    """A module as a function that returns its exports; imports are taken from the results of other modules."""
    body = compact(IMPORT.sub(_import_statement, source))
    exported = ", ".join(found[2] for found in EXPORT.finditer(body))
    return "\n".join((f"const from_{name} = (() => {{", EXPORT.sub(r"\1", body), f"return {{ {exported} }};", "})();"))


def _import_statement(found: re.Match[str]) -> str:
    names = ALIAS.sub(r"\1: \2", found[1])
    return f"const {{{names}}} = from_{found[2]};"


def _names(modules: Iterable[str]) -> str:
    return ", ".join(f"from_{name}" for name in modules)
