"""Prints docs/seeds.md from tests/seeds/*.toml; `python -m tests.seeds.table` writes the page, `--check` compares it."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/seeds"
PAGE = ROOT / "docs/seeds.md"
HEAD = """# Seeds

The specifications that Pointsman implements, rule by rule, each with the tests that show it. A ruling says where the
behaviour differs from the sentence, or how an open point was decided. `make seeds` prints this page from
`tests/seeds/*.toml`; a test fails when a named test does not exist or a rule has none.
"""
SEED_FIELDS = {"seed", "title", "sentence"}
SENTENCE_FIELDS = {"section", "text", "tests", "ruling"}


@dataclass(frozen=True, slots=True)
class Sentence:
    """One normative sentence of a seed."""

    section: str
    text: str
    tests: tuple[str, ...]
    ruling: str


@dataclass(frozen=True, slots=True)
class Seed:
    """One specification."""

    number: str
    title: str
    sentences: tuple[Sentence, ...]


def read_seed(path: Path) -> Seed:
    """The seed of one file; an unknown or missing field is an error that names the file."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    _refuse_unknown(path, data, SEED_FIELDS)
    if data["seed"] != path.stem:
        raise ValueError(f"{path.name}: seed is {data['seed']!r}, the file is named {path.stem!r}")
    return Seed(data["seed"], data["title"], tuple(_read_sentence(path, entry) for entry in data["sentence"]))


def _read_sentence(path: Path, entry: dict[str, Any]) -> Sentence:
    _refuse_unknown(path, entry, SENTENCE_FIELDS)
    return Sentence(entry["section"], entry["text"], tuple(entry.get("tests", ())), entry.get("ruling", ""))


def _refuse_unknown(path: Path, entry: dict[str, Any], known: set[str]) -> None:
    if unknown := sorted(entry.keys() - known):
        raise ValueError(f"{path.name}: unknown field {', '.join(unknown)} in {str(entry)[:80]}")


def read_seeds(folder: Path = DATA) -> list[Seed]:
    """All seeds, by number."""
    return [read_seed(path) for path in sorted(folder.glob("*.toml"))]


@cache
def defined_tests(path: Path) -> frozenset[str]:
    """The names of the test functions that a file defines at its top level."""
    if not path.is_file():
        return frozenset()
    functions = (
        node
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def problems(seeds: list[Seed], root: Path = ROOT) -> Iterator[str]:
    """What is wrong with the data: sentences without a test or given twice, tests that do not exist."""
    for seed in seeds:
        seen: set[tuple[str, str]] = set()
        for sentence in seed.sentences:
            where = f"{seed.number} {sentence.section}: {sentence.text!r}"
            if (sentence.section, sentence.text) in seen:
                yield f"{where} is listed twice"
            seen.add((sentence.section, sentence.text))
            if not sentence.tests:
                yield f"{where} names no test"
            for test in sentence.tests:
                file, _, function = test.partition("::")
                if function not in defined_tests(root / file):
                    yield f"{where} names {test}, which does not exist"


def page(seeds: list[Seed]) -> str:
    """The document."""
    return HEAD + "".join(_seed_part(seed) for seed in seeds)


def _seed_part(seed: Seed) -> str:
    parts = [f"\n## {seed.number}: {seed.title}\n"]
    for section, sentences in groupby(seed.sentences, attrgetter("section")):
        rows = [f"| {_cell(one.text)} | {_links(one.tests)} | {_cell(one.ruling)} |" for one in sentences]
        parts.append("\n".join([f"\n### {section}\n", "| rule | shown by | ruling |", "|---|---|---|", *rows]) + "\n")
    return "".join(parts)


def _links(tests: tuple[str, ...]) -> str:
    parted = (test.partition("::") for test in tests)
    return "<br>".join(
        f"[{function.removeprefix('test_').replace('_', ' ')}](../{file})" for file, _, function in parted
    )


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def main(arguments: list[str]) -> int:
    """Writes the page, or with --check says whether it is current."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m tests.seeds.table [--check]", file=sys.stderr)
        return 2
    seeds = read_seeds()
    found = list(problems(seeds))
    if arguments and (not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != page(seeds)):
        found.append("docs/seeds.md is not what tests/seeds/*.toml print: run `make seeds`")
    for problem in found:
        print(problem, file=sys.stderr)
    if not arguments:
        PAGE.write_text(page(seeds), encoding="utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
