"""The guide for other languages: its call by hand, typed word for word, and its build commands, which `make clients` plays."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scenarios.commands import ROOT, Running
from tests.scenarios.test_clients import BUF, EXAMPLES

GUIDE = (ROOT / "docs" / "clients.md").read_text()
GETS_A_TOKEN = re.compile(r"`(eval \"\$\(pointsman token --env\)\")`")
BY_HAND = re.compile(r"^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (Java|Go|TypeScript) \| `([^`]*)` \| `([^`]*)` \|$", re.MULTILINE)


@pytest.mark.timeout(240)
def test_a_reader_of_the_guide_calls_the_server_by_hand(tmp_path: Path) -> None:
    found = (GETS_A_TOKEN.search(GUIDE), BY_HAND.search(GUIDE))
    assert found[0] is not None
    assert found[1] is not None
    data = {"POINTSMAN_DATA": str(tmp_path), "HOME": str(tmp_path / "home")}
    up = Running(("up", "--port", "0", "--no-crew"), data)
    try:
        up.line_with(" up at ")
        path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        done = subprocess.run(
            ["sh", "-ec", f"{found[0][1]}\n{found[1][1]}"],
            cwd=ROOT, env={**data, "PATH": path}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        up.stop()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "RUN_STATE_COMPLETE" in done.stdout


def test_the_build_commands_of_the_guide_are_those_that_are_played() -> None:
    rows = {language.lower(): (build, play) for language, build, play in ROW.findall(GUIDE)}
    assert set(rows) == {example.language for example in EXAMPLES}
    for example in EXAMPLES:
        build, play = rows[example.language]
        enters, *steps = build.split("; ")
        assert enters == f"cd clients/{example.language}"
        played = {" ".join(step).replace(BUF, "buf") for step in (example.fetch, *example.build)}
        plain = {re.sub(r" (-q|-B|-ntp|--no-progress)\b", "", step) for step in played}
        assert {re.sub(r"^GOBIN=\$PWD/bin ", "", step) for step in steps} <= plain
        folder = f"{ROOT / 'clients' / example.language}/"
        assert play == " ".join((*example.command, "conform")).replace(folder, "")
