"""`make runners`: adapters tried with the real test runners, which are installed from package indexes into a folder.

A base with a red and a green test is proven with a true solution, which has to be PROVEN test by test, and with a cheat
that deletes the red test, which has to be refused. A runner that cannot be installed is left out, loudly.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pointsman.proof.execution import CommandRunner, Furnishing
from pointsman.proof.prover import Baselines, Proof, ProofRequest, Prover
from pointsman.proof.verdict import Decision, Grade
from pointsman.sandbox import Limits
from tests.helpers.limits import scaled
from tests.unit.proof.deliveries import delivered

WRONG = "exports.add = (a, b) => a - b;\n"
RIGHT = "exports.add = (a, b) => a + b;\n"
GLOBALS = (
    "const { add } = require('./calc.js');\n"
    "describe('calc', () => {\n"
    "  it('adds', () => { if (add(1, 2) !== 3) throw new Error('no'); });\n"
    "  it('keeps', () => { if (add(1, 0) !== 1) throw new Error('no'); });\n});\n"
)
VITEST = (
    "import calc from './calc.js';\n"
    "describe('calc', () => {\n"
    "  it('adds', () => { expect(calc.add(1, 2)).toBe(3); });\n"
    "  it('keeps', () => { expect(calc.add(1, 0)).toBe(1); });\n});\n"
)
TAPE = (
    "const test = require('tape');\nconst { add } = require('./calc.js');\n"
    "test('adds', (t) => { t.equal(add(1, 2), 3, 'adds'); t.equal(add(1, 0), 1, 'keeps'); t.end(); });\n"
)
BATS = '@test "adds" {\n  [ "$(sh calc.sh 1 2)" -eq 3 ]\n}\n\n@test "keeps" {\n  [ "$(sh calc.sh 1 0)" -eq 1 ]\n}\n'
RUST = "pub fn add(a: i64, b: i64) -> i64 {{\n    a {} b\n}}\n"
RUST_TESTS = (
    "#[test]\nfn adds() {\n    assert_eq!(calc::add(1, 2), 3);\n}\n\n"
    "#[test]\nfn keeps() {\n    assert_eq!(calc::add(1, 0), 1);\n}\n"
)
JAVA = "package calc;\n\npublic class Calc {{\n    public static int add(int a, int b) {{\n        return a {} b;\n    }}\n}}\n"
JAVA_TESTS = (
    "package calc;\n\nimport static org.junit.{0}Assert{1}.assertEquals;\nimport org.junit.{0}Test;\n\n"
    "public class CalcTest {{\n    @Test public void adds() {{ assertEquals(3, Calc.add(1, 2)); }}\n"
    "    @Test public void keeps() {{ assertEquals(1, Calc.add(1, 0)); }}\n}}\n"
)
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>calc</groupId><artifactId>calc</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency><groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><version>5.11.4</version><scope>test</scope></dependency>
  </dependencies>
  <build><plugins>
    <plugin><groupId>org.apache.maven.plugins</groupId><artifactId>maven-surefire-plugin</artifactId><version>3.5.2</version></plugin>
  </plugins></build>
</project>
"""


@dataclass(frozen=True)
class Trial:
    """A runner with a small project: how it is installed, what it runs, and what is wrong, right and tested."""

    name: str
    install: tuple[tuple[str, ...], ...]
    """Commands; the folder of the tools is their working directory."""
    command: tuple[str, ...]
    """`{tools}` is the folder of the tools."""
    source: str
    wrong: str
    right: str
    test: str
    tests: str
    adds: str
    """A part of the id of the red test."""
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def _node(name: str, *options: str, test: str = "calc.test.js", tests: str = GLOBALS, **more: str) -> Trial:
    return Trial(
        name, (("npm", "install", "--no-audit", "--no-fund", "--silent", name),), (f"{{tools}}/node_modules/.bin/{name}", *options),
        "calc.js", WRONG, RIGHT, test, tests, "adds", more, {"NODE_PATH": "{tools}/node_modules"},
    )  # fmt: skip


TRIALS = (
    _node("jest", **{"package.json": "{}\n"}),
    _node("vitest", "run", test="calc.test.mjs", tests=VITEST, **{"vitest.config.mjs": "export default { test: { globals: true } };\n"}),
    _node("mocha", "calc.test.js"),
    _node("tape", "calc.test.js", tests=TAPE),
    Trial("bats", (("npm", "install", "--no-audit", "--no-fund", "--silent", "bats"),), ("{tools}/node_modules/bats/bin/bats", "calc.bats"), "calc.sh", "echo $(($1 - $2))\n", "echo $(($1 + $2))\n", "calc.bats", BATS, "adds"),
    Trial("nextest", (("cargo", "install", "--locked", "--quiet", "--root", ".", "cargo-nextest"),), ("cargo", "nextest", "run", "--offline"), "src/lib.rs", RUST.format("-"), RUST.format("+"), "tests/calc_test.rs", RUST_TESTS, "adds", {"Cargo.toml": '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n'}, {"PATH": "{tools}/bin:{PATH}"}),
    Trial("maven", (("mvn", "-q", "-B", "-Dmaven.repo.local={tools}/m2", "-f", "{project}", "test"),), ("mvn", "-o", "-B", "-Dmaven.repo.local={tools}/m2", "test"), "src/main/java/calc/Calc.java", JAVA.format("-"), JAVA.format("+"), "src/test/java/calc/CalcTest.java", JAVA_TESTS.format("jupiter.api.", "ions"), "adds", {"pom.xml": POM}),
)  # fmt: skip


async def prove(trial: Trial, tools: Path, folder: Path, change: Mapping[str, str | None]) -> Proof:
    """The proof of a change by the real runner."""
    base = {trial.source: trial.wrong, trial.test: trial.tests, **trial.files}
    repository, first, second = await delivered(folder / "user", base, change)
    environment = {key: _filled(value, tools) for key, value in trial.environment.items()}
    furnishing = Furnishing(environment, (tools,), (tools,), limits=Limits(seconds=scaled(180)))
    runner = CommandRunner(repository, folder / "proof", furnishing)
    command = tuple(_filled(word, tools) for word in trial.command)
    return await Prover(repository, runner, Baselines()).prove(ProofRequest(first, second, (command,)))


def _filled(text: str, tools: Path) -> str:
    return text.replace("{tools}", str(tools)).replace("{PATH}", os.environ.get("PATH", ""))


def install(trial: Trial, tools: Path) -> str:
    """Installs a runner; why it cannot be had, or nothing."""
    tools.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as project:
        for name, text in {trial.source: trial.right, trial.test: trial.tests, **trial.files}.items():
            path = Path(project) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for command in trial.install:
            if shutil.which(command[0]) is None:
                return f"{command[0]} is not installed"
            words = [_filled(word, tools).replace("{project}", project) for word in command]
            ended = subprocess.run(words, cwd=tools, check=False, capture_output=True, text=True)
            if ended.returncode:
                return f"`{' '.join(command)}`: {ended.stdout[-300:]}{ended.stderr[-300:]}"
    return "" if trial.install or shutil.which(trial.command[0]) else f"{trial.command[0]} is not installed"


async def problems(trial: Trial, tools: Path) -> list[str]:
    """What the adapter gets wrong."""
    found = []
    with tempfile.TemporaryDirectory(prefix="runners-") as place:
        true = await prove(trial, tools, Path(place), {trial.source: trial.right})
    report = true.commands[0].restored.report if true.commands else None
    fixed = [test for facts in true.commands for test in facts.in_restored.fixed]
    if true.verdict.decision is not Decision.ACCEPTED or true.verdict.grade is not Grade.PROVEN:
        found.append(f"a true solution is {true.verdict.decision} {true.verdict.grade}: {true.verdict.reasons}")
    if report is None or report.adapter == "exit code" or len(report.executed) != 2:
        found.append(f"its two tests are read as {report}")
    if len(fixed) != 1 or trial.adds not in fixed[0]:
        found.append(f"the fixed test is {fixed}")
    with tempfile.TemporaryDirectory(prefix="runners-") as place:
        cheat = await prove(trial, tools, Path(place), {trial.test: None})
    if cheat.verdict.decision is not Decision.REFUSED:
        found.append(f"deleted tests are {cheat.verdict.decision}: {cheat.verdict.reasons}")
    return found


def main() -> None:
    """Tries the runners that are named, or all."""
    folder, names = Path(sys.argv[1]).resolve(), sys.argv[2:]
    failed = False
    for trial in TRIALS:
        if names and trial.name not in names:
            continue
        if why := install(trial, folder / trial.name):
            print(f"LEFT OUT: {trial.name}: {why}", flush=True)
            continue
        found = asyncio.run(problems(trial, folder / trial.name))
        failed = failed or bool(found)
        print(f"{trial.name}: {'as it should be' if not found else '; '.join(found)}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
