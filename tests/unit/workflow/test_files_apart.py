"""Tasks that could change the same file are never in progress at the same time, whatever the plan."""

import os
import re
from functools import cache
from itertools import combinations, product
from random import Random  # noqa: TID251 - a plan is repeated from its seed

import pytest

from pointsman._shared.globs import covers, overlap
from pointsman.services.workflow.domain import commands
from pointsman.services.workflow.domain.enums import ExecutionMode, TaskStatus
from pointsman.services.workflow.domain.events import Fields
from pointsman.services.workflow.domain.model import Settings
from pointsman.services.workflow.domain.tasks import TaskSpec
from tests.unit.workflow.flow import Flow, planned, spec

PLANS = 100_000 if os.environ.get("POINTSMAN_TEST_PLANS") == "all" else 1_000
NAMES = ("a", "b", "src", "x.py", "y.py", "A")
PARTS = (*NAMES, "*", "*.py", "?", "?.py", "[ab]", "{a,b}", "**", "x*", "s?c")
PATHS = ["/".join(path) for depth in (1, 2, 3) for path in product(NAMES, repeat=depth)]


def fits(glob: str, path: str) -> bool:
    """Whether a glob covers a path, written down a second time: by a regular expression, or as a folder of it."""
    parts = []
    for part in glob.split("/"):
        words = re.escape(part).replace(r"\*\*", "\0").replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
        words = re.sub(r"\\\{([^}]*)\\\}", lambda found: f"({found[1].replace(',', '|')})", words)
        parts.append(words.replace(r"\[ab\]", "[ab]"))
    pattern = "/".join(parts).replace("\0/", "(.*/)?").replace("/\0", "(/.*)?").replace("\0", ".*")
    is_folder = "." not in glob.rpartition("/")[2] or glob.endswith("/")
    return bool(re.fullmatch(pattern + "(/.*)?" * is_folder, path, re.IGNORECASE))


def random_glob(source: Random) -> str:
    return "/".join(source.choices(PARTS, k=source.randint(1, 3)))


def started(*specs: TaskSpec) -> Flow:
    """A running workflow that pauses for nothing, as a run has it."""
    flow = Flow()
    settings = Settings(ExecutionMode.QUALITY_GATE, use_subagent=True, pause_before_commit=False)
    flow.do(commands.UpsertPlan("w1", Fields(settings=settings), planned(*specs)))
    flow.do(commands.Execute("w1"))
    return flow


@pytest.mark.timeout(1800)
def test_no_two_tasks_in_progress_could_change_the_same_file() -> None:
    for seed in range(PLANS):
        source = Random(seed)
        specs = [
            spec(f"T{number}", files=tuple(random_glob(source) for _ in range(source.randint(0, 2))))
            for number in range(source.randint(2, 7))
        ]
        flow = started(*specs)
        for _ in range(2 * len(specs)):
            handed = flow.do(commands.NextTasks("w1", limit=source.randint(1, 4))).tasks
            busy = flow.state.tasks.with_status(TaskStatus.IN_PROGRESS)
            for one, other in combinations(busy, 2):
                together = covered(one.spec.files) & covered(other.spec.files)
                assert not together, (seed, one.spec.files, other.spec.files, together)
            if not handed:
                flow.do(commands.CompleteTask("w1", busy[0].task_id))
            if flow.status != "running":
                break
        assert flow.status == "completed", f"plan {seed} got stuck: {flow.statuses()}"


def covered(globs: tuple[str, ...]) -> frozenset[str]:
    return frozenset[str]().union(*map(covered_by, globs))


@cache
def covered_by(glob: str) -> frozenset[str]:
    return frozenset(path for path in PATHS if fits(glob, path))


def test_globs_that_cover_one_path_overlap_and_most_others_do_not() -> None:
    source, apart, wrong = Random(7), 0, 0
    for _ in range(3_000):
        one, other = random_glob(source), random_glob(source)
        meet = bool(covered_by(one) & covered_by(other))
        assert overlap(one, other) or not meet, (one, other)
        assert overlap(one, other) == overlap(other, one)
        apart, wrong = apart + (not meet), wrong + (overlap(one, other) and not meet)
    assert wrong < apart / 4, "careful, but not so that everything waits for everything"


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("src/a.py", "src/a.py", True),
        ("src/a.py", "SRC/A.py", True),
        ("./src//a.py", "src/a.py", True),
        ("src", "src/deep/a.py", True),
        ("src/", "src/a.py", True),
        ("conf.d", "conf.d/a.conf", True),
        ("src/**", "src/a/b/c.py", True),
        ("**/*.py", "src/a/b.py", True),
        ("src/*.py", "src/[a-c].py", True),
        ("*", "docs/usage.md", True),
        ("src/a.py", "src/b.py", False),
        ("src/**/*.py", "src/**/*.md", False),
        ("src/y.py", "**/x.py", False),
        ("src/*", "docs/*", False),
        ("src/{a,b/c}.py", "src/b/c.py", True),
        ("src/{a,b/c}.py", "docs/b.md", False),
        ("src/[a", "src/x.py", True),
        ("/".join("*" * 65), "a.py", True),
        ("a" * 257, "b", True),
    ],
)
def test_overlap_is_as_a_person_would_say(one: str, other: str, meet: bool) -> None:
    assert overlap(one, other) is meet


def test_a_glob_covers_what_is_in_its_folders_and_names_with_brackets_too() -> None:
    assert covers("app/**", "app/[id]/page.tsx")
    assert covers("app", "app/x.py")
    assert not covers("app/*.py", "lib/x.py")


def test_a_task_behind_one_that_collides_goes_first() -> None:
    flow = started(spec("T1", files=("a.py",)), spec("T2", files=("*.py",)), spec("T3", files=("b.md",)))
    assert [task.task_id for task in flow.do(commands.NextTasks("w1", limit=3)).tasks] == ["T1", "T3"]
    flow.do(commands.CompleteTask("w1", "T1"))
    assert [task.task_id for task in flow.do(commands.NextTasks("w1", limit=3)).tasks] == ["T2"]
