"""The console's JavaScript without a browser: its own tests under node, its types, and rules that every module keeps."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pointsman.cli.render.run_table import ATTENTION_WORDS
from pointsman.services.gateway.bundling import compact
from pointsman.services.gateway.pages import script

HERE = Path(__file__).parent
FOLDER = HERE.parents[2] / "services" / "gateway" / "console" / "js"
MODULES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.js"))}
NODE, TSC = shutil.which("node"), shutil.which("tsc")
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


@pytest.mark.skipif(
    TSC is None, reason="TSC IS MISSING: the console's types were not checked (npm install -g typescript)"
)
def test_the_types_of_the_console_hold(tmp_path: Path) -> None:
    options = {
        "checkJs": True, "noEmit": True, "target": "es2023", "module": "es2022", "moduleResolution": "bundler",
        "lib": ["es2024", "dom", "dom.iterable"], "skipLibCheck": True,
    }  # fmt: skip
    (tmp_path / "jsconfig.json").write_text(json.dumps({"compilerOptions": options, "include": [f"{FOLDER}/*.js"]}))
    done = subprocess.run(
        [str(TSC), "-p", str(tmp_path / "jsconfig.json")], capture_output=True, text=True, check=False
    )
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
def test_the_joined_script_is_a_script(tmp_path: Path) -> None:
    (tmp_path / "console.mjs").write_text(script())
    done = subprocess.run([str(NODE), "--check", str(tmp_path / "console.mjs")], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_console_and_the_command_line_say_the_same_words() -> None:
    block = re.search(r"export const ATTENTION = \{(.*?)\};", MODULES["words"], re.DOTALL)
    assert block is not None
    assert re.findall(r': "([^"]+)"', block[1]) == list(ATTENTION_WORDS.values())
