"""The page about agents: every file of the handoff folder with its schema, as the code has them."""

import re
import subprocess
import sys
from pathlib import Path

from pointsman.worker import handoff

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "agents.md"


def test_the_schemas_are_those_of_the_messages() -> None:
    done = subprocess.run([sys.executable, ROOT / "docs" / "handoff.py", "--check"], check=False)
    assert done.returncode == 0, "run `python docs/handoff.py`"


def test_every_file_that_the_worker_names_is_on_the_page() -> None:
    source = Path(handoff.__file__).read_text()
    names = set(re.findall(r'"([a-z_.]+\.(?:md|json|jsonl))"', source))
    assert len(names) > 15
    page = PAGE.read_text()
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []
