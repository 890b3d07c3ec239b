"""The router in its two forms, as it is written and compiled, decides every message alike; `make compiled` tries it."""

import json
import os
import subprocess
import tomllib
import zipfile
from pathlib import Path
from random import Random  # noqa: TID251 - the same texts every time

import pytest

from tests.helpers.compiled import ROOT, build_wheel, compiled_tree, missing, python_of
from tests.unit.router.deciding import decided, is_compiled
from tests.unit.router.test_properties import FRAGMENTS

ASKED_FOR = "POINTSMAN_BUILD_COMPILED"
FUZZED = 5_000
pytestmark = pytest.mark.xdist_group("compiled")
asked_for = pytest.mark.skipif(not os.environ.get(ASKED_FOR), reason="compiling takes a minute: `make compiled`")


@pytest.fixture(scope="module")
def tree() -> Path:
    """What the compiled wheel holds."""
    if reason := missing():
        pytest.skip(f"NOT TRIED: {reason}")
    return compiled_tree()


def messages() -> list[str]:
    """Our samples, whole and torn, and mixtures of their words with what the rules look for."""
    files = sorted((ROOT / "tests/data").glob("routing_*.jsonl"))
    samples = [json.loads(line)["text"] for file in files for line in file.read_text("utf-8").splitlines()]
    torn = [part for text in samples for part in (text[: len(text) // 2], text[len(text) // 2 :], f"{text}?")]
    words = [*FRAGMENTS, *(word for text in samples for word in text.split())]
    chance = Random(3)
    mixed = [chance.choice(" \n,").join(chance.choices(words, k=chance.randrange(1, 25))) for _ in range(FUZZED)]
    return [*samples, *torn, *mixed]


@asked_for
@pytest.mark.timeout(600)
def test_both_forms_decide_every_message_alike(tree: Path) -> None:
    texts = messages()
    command, environment = python_of(tree, "-m", "tests.unit.router.deciding")
    asked = json.dumps(texts)
    answer = subprocess.run(command, env=environment, check=True, input=asked, stdout=subprocess.PIPE, text=True)
    assert not is_compiled()
    pairs = zip(decided(texts), json.loads(answer.stdout), strict=True)
    assert [pair for pair in pairs if pair[0] != pair[1]] == []


@asked_for
@pytest.mark.timeout(600)
def test_the_compiled_wheel_holds_each_module_beside_its_source(tree: Path) -> None:
    hooks = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]
    domain = tree / "pointsman/services/router/domain"
    built = {path.name.partition(".")[0] for path in domain.glob("*.so")}
    assert built == set(hooks["custom"]["modules"])
    assert all((domain / f"{name}.py").exists() for name in built)


def test_a_wheel_is_pure_unless_it_is_asked_to_be_compiled(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path, compiled=False)
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as held:
        assert [name for name in held.namelist() if name.endswith(".so")] == []
