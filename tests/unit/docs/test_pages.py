"""The documentation leads nowhere wrong, and names only files that are there."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.helpers.scripts import ROOT, script

RECIPES = ("Add an RPC", "Add a state", "Add a peer call", "Add an agent profile")
NAMED = re.compile(r"`((?:protos|pointsman|services|tests|docs|deploy|\.ci)/[\w./-]+|[A-Z]+\.md)`")


@pytest.fixture
def pages() -> Iterator[ModuleType]:
    with script("docs/pages.py") as module:
        yield module


@pytest.fixture
def elsewhere(pages: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository in the place of ours."""
    (tmp_path / "docs" / "images").mkdir(parents=True)
    (tmp_path / "docs" / "adr").mkdir()
    (tmp_path / "README.md").write_text("# Points\n\n[a page](docs/page.md#what-it-is), [decisions](docs/adr)\n")
    (tmp_path / "docs" / "page.md").write_text("# Page\n\n## What it is\n\n[code](../code.py), [home](../README.md)\n")
    (tmp_path / "docs" / "adr" / "0001-first.md").write_text("# 0001 The first\n")
    (tmp_path / "code.py").touch()
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "ELSEWHERE", {"README.md": "index.md"})
    return tmp_path


def test_every_link_of_the_documentation_leads_somewhere_and_no_line_is_too_long() -> None:
    done = subprocess.run(
        [sys.executable, "docs/pages.py", "check"], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[x](gone.md)", "docs/new.md:1: gone.md: there is no docs/gone.md"),
        ("[x](page.md#nothing)", "docs/new.md:1: page.md#nothing: docs/page.md has no such heading"),
        ("[x](#nothing)", "docs/new.md:1: #nothing: docs/new.md has no such heading"),
        ("word " * 25, "docs/new.md:1: 125 characters; `docs/wrap.py` wraps at 120"),
    ],
)
def test_a_dead_link_and_a_long_line_are_named(text: str, said: str, pages: ModuleType, elsewhere: Path) -> None:
    assert pages.problems() == []
    (elsewhere / "docs" / "new.md").write_text(text + "\n")
    assert pages.problems() == [said]


@pytest.mark.parametrize(
    "text", ["`[x](gone.md)`", "```\n[x](gone.md)\n```", "[x](https://gone.example)", "| " + "x" * 130]
)
def test_code_other_hosts_and_tables_are_left_alone(text: str, pages: ModuleType, elsewhere: Path) -> None:
    (elsewhere / "docs" / "new.md").write_text(text + "\n")
    assert pages.problems() == []


def test_links_follow_the_pages_into_the_site_and_other_files_become_their_paths(
    pages: ModuleType, elsewhere: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    staged = tmp_path_factory.mktemp("staged")
    pages.stage(staged)
    assert "[a page](page.md#what-it-is), [decisions](adr/index.md)" in (staged / "index.md").read_text()
    assert "code (`code.py`), [home](index.md)" in (staged / "page.md").read_text()
    assert "- [0001 The first](0001-first.md)" in (staged / "adr" / "index.md").read_text()


def test_every_file_that_contributing_names_exists_and_every_recipe_names_some() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert [name for name in NAMED.findall(text) if not (ROOT / name).exists()] == []
    for recipe in RECIPES:
        (steps,) = re.findall(rf"^### {recipe}\n(.*?)(?=^### |\Z)", text, re.MULTILINE | re.DOTALL)
        assert len(NAMED.findall(steps)) >= 4, recipe


@pytest.fixture
def wrap() -> Iterator[ModuleType]:
    with script("docs/wrap.py") as module:
        yield module


def test_wrapping_changes_no_word_and_begins_no_line_with_a_mark(wrap: ModuleType) -> None:
    item = "- one " + "word - 1. # " * 30
    lines = wrap.wrapped([item])
    assert " ".join(" ".join(lines).split()) == item.strip()
    assert max(len(line) for line in lines) <= wrap.MAX_LINE
    assert all(re.match(r"  word ", line) for line in lines[1:])


def test_what_is_short_and_what_is_code_or_a_table_is_not_wrapped(wrap: ModuleType) -> None:
    lines = ["a short", "paragraph", "", "```", "x" * 200, "```", "| " + "y " * 100 + "|", "<!-- " + "z " * 100 + "-->"]
    pieces = list(wrap.blocks(lines))
    assert [line for may, piece in pieces for line in (wrap.wrapped(piece) if may else piece)] == lines
