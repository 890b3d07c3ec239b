"""`pointsman init` on small projects as the registries have them: what is proposed works at once, and finds the bug.

The real projects are played by `make ecosystems`. Go is left to it: its first test of an empty cache compiles the
standard library, which takes half a minute.
"""

import json
import shutil
from pathlib import Path

import pytest

from tests.scenarios.commands import finished_in
from tests.unit.worker.repositories import repository

ADD_TEST = "import unittest\n\nfrom calc import add\n\n\nclass AddTest(unittest.TestCase):\n    def test_adds(self):\n"
PYTHON = {
    "src/calc/__init__.py": "def add(a, b):\n    return a - b\n",
    "src/tests.py": f"{ADD_TEST}        self.assertEqual(add(1, 2), 3)\n",
}
SCRIPTS = {
    "pretest": "eslint .",
    "test": "npm run unit && npm run types",
    "unit": "node --test",
    "types": "tsd",
    "posttest": "aud --production",
}
NODE = {
    "package.json": json.dumps({"name": "calc", "version": "1.0.0", "scripts": SCRIPTS}),
    "calc.js": "exports.add = (a, b) => a - b\n",
    "test/calc.test.js": (
        "const test = require('node:test')\nconst assert = require('node:assert')\nconst { add } = require('../calc.js')\n"
        "test('adds', () => assert.strictEqual(add(1, 2), 3))\n"
    ),
}
RUST = {
    "Cargo.toml": '[package]\nname = "calc"\nversion = "1.0.0"\nedition = "2021"\n',
    "Cargo.lock": 'version = 3\n\n[[package]]\nname = "calc"\nversion = "1.0.0"\n',
    "src/lib.rs": (
        "pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n"
        "    fn adds() {\n        assert_eq!(super::add(1, 2), 3);\n    }\n}\n"
    ),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("program", "files", "verify", "red"),
    [
        ("python3", PYTHON, "python3 -m unittest discover -q -s src", "tests.AddTest.test_adds"),
        ("npm", NODE, "npm run unit", "adds"),
        ("cargo", RUST, "cargo test", "adds"),
    ],
    ids=["python", "node", "rust"],
)
async def test_what_is_proposed_for_a_project_works_at_once(
    tmp_path: Path, program: str, files: dict[str, str], verify: str, red: str
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"NOT CHECKED: {program} is not on this machine")
    await repository(tmp_path / "user", files)
    code, output = finished_in(tmp_path / "user", "init", "--json", POINTSMAN_DATA=str(tmp_path / "data"))
    found = json.loads(output.splitlines()[-1])
    assert (code, found["state"], found["failure"]) == (0, "RED", ""), output
    (command,) = found["commands"]
    assert (" ".join(command["command"]), command["tests"]) == (verify, 1)
    (name,) = command["red"]
    assert name.endswith(red)
