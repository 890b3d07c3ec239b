"""The console's files keep the house's rules: short, offline, and nothing that reads text as markup or code."""

import re
from pathlib import Path

import pytest

from pointsman.services.gateway.bundling import bundle
from pointsman.services.gateway.compression import BEST, compress
from pointsman.services.gateway.pages import FOLDER, script, style

FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\"style\"|srcdoc|javascript:"
)
MAX_FILE_LINES, MAX_FUNCTION_LINES = 400, 60
MOST_BYTES, FOR_THE_RUN = 61440, 4096
FUNCTION = re.compile(r"^( *)(?:export )?(?:async )?(?:function\*? \w+|(?:async |get )?\w+)\(.*\) \{$")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_text_is_read_as_markup_or_code(path: Path) -> None:
    assert FORBIDDEN.findall(path.read_text()) == []


def test_nothing_comes_from_elsewhere() -> None:
    for path in FILES:
        addresses = set(re.findall(r"https?://[^\"'\s]+", path.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path


def test_every_import_leads_to_a_file() -> None:
    for path in SCRIPTS:
        assert "import(" not in path.read_text() or path.stem in ("main", "run"), path
        for name in re.findall(r"(?:from\s*|import\()\"(\./[^\"]+)\"", path.read_text()):
            assert (path.parent / name).is_file(), (path, name)


def test_the_modules_are_joined_with_those_that_others_need_first() -> None:
    sources = {
        "main": 'import { a, b as c } from "./tools.js";\nimport { d } from "./words.js";\n\na(c, d, () => import("./page.js"));\n',
        "tools": 'import { d } from "./words.js";\n\nexport const a = d;\nexport async function* b() {}\n',
        "words": "export class d {}\n",
        "page": 'import { d } from "./words.js";\nimport { f } from "./parts.js";\n\nexport const g = f(d);\n',
        "parts": "export function f() {}\n",
        "unused": "export const e = 1;\n",
    }
    whole = bundle(sources, "main", ("first.js", "later.js"))
    assert re.findall(r"^const from_(\w+)", whole.first, re.MULTILINE) == ["words", "tools", "main"]
    assert "const { a, b: c } = from_tools;" in whole.first
    assert "return { a, b };" in whole.first
    assert 'import("./later.js").then((all) => all.from_page)' in whole.first
    assert whole.first.endswith("export { from_words };")
    assert re.findall(r"^const from_(\w+)", whole.later, re.MULTILINE) == ["parts", "page"]
    assert whole.later.startswith('import { from_words } from "./first.js";')
    assert whole.later.endswith("export { from_page };")


def test_the_joined_scripts_hold_every_module_once() -> None:
    whole = script()
    joined = [re.findall(r"^const from_(\w+)", one, re.MULTILINE) for one in (whole.first, whole.later)]
    assert not set(joined[0]) & set(joined[1])
    alone = {"login", "early"}
    assert {*joined[0], *joined[1], *alone} == {path.stem for path in SCRIPTS}
    assert not re.search(r"^(import|export) (?!\{ from_)", f"{whole.first}\n{whole.later}", re.MULTILINE)


def test_what_comes_before_the_first_view_is_light() -> None:
    sent = [
        script().first,
        (FOLDER / "early.js").read_text(),
        style(),
        (FOLDER / "index.html").read_text(),
        (FOLDER / "icon.svg").read_text(),
    ]
    assert sum(len(compress(one.encode(), BEST)) for one in sent) < MOST_BYTES - FOR_THE_RUN


def test_files_and_functions_are_short() -> None:
    for path in SCRIPTS:
        lines = path.read_text().splitlines()
        assert len(lines) <= MAX_FILE_LINES, path
        for number, line in enumerate(lines):
            begun = FUNCTION.match(line)
            if begun:
                end = next(place for place in range(number, len(lines)) if lines[place].startswith(f"{begun[1]}}}"))
                assert end - number < MAX_FUNCTION_LINES, (path.name, line)


def test_the_page_has_no_script_and_no_style_of_its_own() -> None:
    page = (FOLDER / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon[a-z]+=", page)
