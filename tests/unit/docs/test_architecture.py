"""The page about the architecture: every file that it names exists, and its layers are those of the import contracts."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "architecture.md"


def test_every_file_that_the_page_names_exists() -> None:
    named = re.findall(r"`((?:services|pointsman|protos)/[\w./]+)`", PAGE.read_text())
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_layers_are_those_of_the_import_contracts() -> None:
    done = subprocess.run([sys.executable, ROOT / "docs" / "layers.py", "--check"], check=False)
    assert done.returncode == 0, "run `python docs/layers.py`"
