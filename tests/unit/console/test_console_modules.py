"""The console's JavaScript without a browser: its own tests under node, and rules that every module keeps."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1.assignment_pb2 import Capability
from pointsman.cli.render.run_table import ATTENTION_WORDS
from pointsman.cli.session.crew import WITHOUT
from pointsman.cli.session.workers import CAPABILITIES
from pointsman.services.gateway.bundling import compact
from pointsman.services.gateway.pages import script

HERE = Path(__file__).parent
FOLDER = HERE.parents[2] / "services" / "gateway" / "console" / "js"
MODULES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.js"))}
NODE = shutil.which("node")
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z]+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?:async )?(?:function\*?|class|const) (\w+)", re.MULTILINE)
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setTimeout\(\s*[\"'`]|[^=!]==[^=]|!=[^=]"
)
MOST_LINES = 400


@pytest.mark.skipif(NODE is None, reason="NODE IS MISSING: the console's own functions were not tested")
def test_the_functions_of_the_console_hold_under_node() -> None:
    command = [str(NODE), "--experimental-default-type=module", "--test", *map(str, sorted(HERE.glob("*.test.mjs")))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_what_there_is_and_uses_what_it_imports(name: str) -> None:
    source = MODULES[name]
    body = IMPORT.sub("", source)
    for found in IMPORT.finditer(source):
        offered = set(EXPORT.findall(MODULES[found[2]]))
        for item in filter(None, (part.strip() for part in found[1].split(","))):
            original, _, alias = item.partition(" as ")
            assert original in offered, f"{found[2]}.js has no {original}"
            assert re.search(rf"\b{re.escape(alias or original)}\b", body), f"{item} is not used"


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_checked_short_and_free_of_what_reads_text_as_code(name: str) -> None:
    source = MODULES[name]
    assert source.startswith("// @ts-check\n// ")
    assert len(source.splitlines()) <= MOST_LINES
    code = "\n".join(line for line in source.splitlines() if not line.strip().startswith("//"))
    assert not FORBIDDEN.search(code)


def test_everything_that_is_exported_is_used_by_another_module_or_a_test() -> None:
    tests = "".join(path.read_text() for path in HERE.glob("*.test.mjs"))
    imported = {
        item.strip().partition(" as ")[0]
        for source in MODULES.values()
        for found in IMPORT.finditer(source)
        for item in found[1].split(",")
    }
    imported |= set(re.findall(r"(?:await (?:load\(\)|import\([^)]*\))\)\.)(\w+)", MODULES["main"]))
    imported |= set(re.findall(r"const \{ (\w+) \} = await import\(", MODULES["run"]))
    unused = {
        f"{name}.{item}"
        for name, source in MODULES.items()
        for item in EXPORT.findall(source)
        if item not in imported and not re.search(rf"\b{item}\b", tests)
    }
    assert unused == set()


def test_no_text_goes_over_several_lines_so_that_indentation_can_be_left_out() -> None:
    pattern = re.compile(r"`(?:\\.|\$\{(?:[^{}]|\{[^{}]*\})*\}|[^`\\])*`", re.DOTALL)
    for name, source in MODULES.items():
        if name != "syntax":
            assert not [text for text in pattern.findall(source) if "\n" in text], name
    assert compact("a\n  // why\n\n  b") == "a\nb"


@pytest.mark.skipif(NODE is None, reason="NODE IS MISSING: the joined script was not read")
def test_the_joined_scripts_are_scripts(tmp_path: Path) -> None:
    whole = script()
    for name, text in (("first.mjs", whole.first), ("later.mjs", whole.later)):
        (tmp_path / name).write_text(text)
        done = subprocess.run([str(NODE), "--check", str(tmp_path / name)], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


def _words_of(module: str, name: str) -> dict[str, str]:
    block = re.search(rf"const {name} = \{{(.*?)\}};", MODULES[module], re.DOTALL)
    assert block is not None
    return dict(re.findall(r'(\w+): "([^"]+)"', block[1]))


def test_a_role_that_nobody_plays_has_the_same_consequence_as_on_the_command_line() -> None:
    assert _words_of("crew", "WITHOUT") == WITHOUT
    capabilities = {role: f"CAPABILITY_{name}" for role, name in _words_of("crew", "ROLES").items()}
    assert capabilities == {role: Capability.Name(CAPABILITIES[role]) for role in capabilities}


def test_the_console_and_the_command_line_say_the_same_words() -> None:
    assert list(_words_of("words", "ATTENTION").values()) == list(ATTENTION_WORDS.values())
