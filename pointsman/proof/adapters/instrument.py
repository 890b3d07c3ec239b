"""Prepares a command so that it reports every test outside the tree, and reads what it reported."""

import json
import re
import shlex
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pointsman.proof.adapters import reporters
from pointsman.proof.adapters.readers import READERS
from pointsman.proof.adapters.readers.report import ReadReport
from pointsman.proof.adapters.table import WRAPPER, Adapter, Match, Selection, match
from pointsman.proof.results import TestReport, TestResult, by_id

MAX_REPORT_BYTES = 64 * 1024 * 1024
PACKAGE_MANAGERS = frozenset({"npm", "yarn", "pnpm", "bun"})
_SHELL = re.compile(r"[|;<>`$()\\]")


@dataclass(frozen=True, slots=True)
class SelectedTests:
    """Tests to be run alone; empty means all."""

    ids: Collection[str] = ()
    files: Collection[str] = ()

    def __bool__(self) -> bool:
        return bool(self.ids or self.files)


@dataclass(frozen=True, slots=True)
class Variation:
    """How a repeated run differs: another order of tests, and another day where the machine can pretend one."""

    seed: int
    days: int


@dataclass(frozen=True, slots=True)
class ReportPlace:
    """Folders outside the tree: reporters, which the command may read, and reports, which it may write."""

    reporters: Path
    reports: Path
    nonce: str


@dataclass(frozen=True, slots=True)
class InstrumentedCommand:
    """A command as it is run, with the variables of its reporter."""

    command: tuple[str, ...]
    adapter: Adapter | None
    place: ReportPlace
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The adapter's name, or that only the exit code counts."""
        return self.adapter.name if self.adapter else "exit code"


def prepare_place(folder: Path, nonce: str) -> ReportPlace:
    """Copies the reporters into a new folder; the nonce keeps a file of the tree from standing for the plugin."""
    place = ReportPlace(folder / "reporters", folder / "reports", nonce)
    place.reporters.mkdir(parents=True)
    place.reports.mkdir()
    source = Path(reporters.__file__).parent
    shutil.copy(source / "pointsman_pytest.py", place.reporters / f"pointsman_pytest_{nonce}.py")
    for name in ("pointsman_unittest.py", "pointsman_node.mjs"):
        shutil.copy(source / name, place.reporters / name)
    return place


def recognise(command: Sequence[str], scripts: Mapping[str, str]) -> Match | None:
    """The adapter of a command; `npm test` and its like are looked up in the scripts of package.json."""
    if not command or command[0] not in PACKAGE_MANAGERS:
        return match(command)
    words = script_words(command, scripts)
    found = match(words) if words else match(command)
    if found is None or found.adapter.insert or found.adapter.replace:
        return None
    return found


def script_words(command: Sequence[str], scripts: Mapping[str, str]) -> list[str]:
    """The last command of the script that a package manager runs; nothing when a shell is needed to read it."""
    named = [word for word in command[1:] if word not in {"run", "run-script"} and not word.startswith("-")]
    script = scripts.get("test" if named[:1] in (["t"], ["tst"]) else named[0], "") if named else ""
    last = script.split("&&")[-1].strip()
    if not last or _SHELL.search(script):
        return []
    try:
        return [word for word in shlex.split(last) if "=" not in word or word.startswith("-")]
    except ValueError:
        return []


def instrument(
    command: Sequence[str],
    place: ReportPlace,
    scripts: Mapping[str, str],
    selected: SelectedTests | None = None,
    variation: Variation | None = None,
) -> InstrumentedCommand:
    """The command with its reporter; unchanged when no adapter knows it."""
    found = recognise(command, scripts)
    if found is None:
        return InstrumentedCommand(tuple(command), None, place)
    adapter, words = _shuffled(found.adapter, variation), list(command)
    if command[0] in PACKAGE_MANAGERS:
        separator = ["--"] if command[0] == "npm" and adapter.append and "--" not in command else []
        words += [*separator, *_filled(adapter.append, place)]
    elif adapter.replace:
        words[found.start : found.end] = _filled(adapter.replace, place)
    else:
        inserted = _filled(adapter.insert, place) + _go_selection(adapter, selected)
        words = [*words[: found.end], *inserted, *words[found.end :], *_filled(adapter.append, place)]
    environment = {key: _fill(value, place) for key, value in adapter.environment.items()}
    if selected and adapter.select is Selection.VARIABLE:
        chosen = place.reporters / "selection.json"
        chosen.write_text(json.dumps({"ids": sorted(selected.ids), "files": sorted(selected.files)}))
        environment["POINTSMAN_SELECTION"] = str(chosen)
    if variation is not None:
        environment |= {"POINTSMAN_SEED": str(variation.seed), "PYTHONHASHSEED": str(variation.seed)}
    return InstrumentedCommand(tuple(words), adapter, place, environment)


def _shuffled(adapter: Adapter, variation: Variation | None) -> Adapter:
    """The adapter with the words that change the order of tests."""
    if variation is None:
        return adapter
    words = tuple(word.replace("{seed}", str(variation.seed)) for word in adapter.shuffle)
    if adapter.append:
        return replace(adapter, append=(*adapter.append, *words))
    return replace(adapter, insert=(*adapter.insert, *words))


def _go_selection(adapter: Adapter, selected: SelectedTests | None) -> list[str]:
    if not selected or adapter.select is not Selection.GO or not selected.ids:
        return []
    names = sorted({re.escape(test_id.rpartition("/")[2].partition(".")[2].split("/")[0]) for test_id in selected.ids})
    return ["-run", f"^({'|'.join(name for name in names if name)})$"] if any(names) else []


def _fill(text: str, place: ReportPlace) -> str:
    folders = {"{reporters}": str(place.reporters), "{reports}": str(place.reports), "{nonce}": place.nonce}
    for name, value in folders.items():
        text = text.replace(name, value)
    return text


def _filled(words: Sequence[str], place: ReportPlace) -> list[str]:
    return [_fill(word, place) for word in words]


def read_report(run: InstrumentedCommand, tree: Path, output: bytes) -> TestReport:
    """What the command reported; a runner without an adapter reports nothing but its exit code."""
    adapter = run.adapter
    if adapter is None:
        return TestReport("exit code", exit_code_only=True)
    texts, problem = _texts(adapter, run.place, tree, output)
    if not texts and adapter.name == WRAPPER and not problem:
        return TestReport("exit code", exit_code_only=True)
    if not texts:
        return TestReport(adapter.name, complete=False, problem=problem or "the test process ended without a report")
    read = [READERS[adapter.reader](text) for text in texts]
    problem = problem or next((one.problem for one in read if one.problem), "")
    return TestReport(adapter.name, by_id(_in_tree(read, tree)), not problem, problem)


def _in_tree(read: Sequence[ReadReport], tree: Path) -> list[TestResult]:
    """Results with paths relative to the tree, because every proof has a tree of its own."""
    prefixes = (f"{tree.resolve()}/", f"{tree}/")

    def relative(text: str) -> str:
        return next((text.removeprefix(prefix) for prefix in prefixes if text.startswith(prefix)), text)

    return [replace(test, id=relative(test.id), file=relative(test.file)) for one in read for test in one.tests]


def _texts(adapter: Adapter, place: ReportPlace, tree: Path, output: bytes) -> tuple[list[str], str]:
    """The texts of a report, and why one cannot be read."""
    if adapter.source == "output":
        return [output.decode(errors="replace")], ""
    if adapter.source in {"lines", "file"}:
        paths = sorted(path for path in place.reports.iterdir() if path.is_file() and not path.is_symlink())
    else:
        paths = sorted(path for path in tree.glob(adapter.source) if path.is_file() and not path.is_symlink())
    if sum(path.stat().st_size for path in paths) > MAX_REPORT_BYTES:
        return [], "the report is too large"
    return [path.read_text(encoding="utf-8", errors="replace") for path in paths], ""
