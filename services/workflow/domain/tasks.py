"""Tasks as planned and as they stand, and the book of those that a decision needs to see."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from pointsman.services.workflow.domain.enums import TaskStatus, task_allows, task_forbids

COMMIT_ACTION = "git_commit"


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task as its planner wrote it."""

    task_id: str
    name: str
    phase: str = ""
    files: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    depends: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    quality_gate: bool = False
    threshold: str = ""
    leverage: str = ""
    design_ref: str = ""
    requirement: str = ""
    priority: int = 0

    @property
    def commits(self) -> bool:
        """Whether it makes a git commit."""
        return any(action.strip().partition(" ")[0].casefold() == COMMIT_ACTION for action in self.actions)

    @property
    def goes_alone(self) -> bool:
        """Whether nothing else may be in flight beside it."""
        return self.quality_gate or self.commits


@dataclass(frozen=True, slots=True)
class Task:
    """A task as it stands."""

    spec: TaskSpec
    status: TaskStatus = TaskStatus.PENDING
    position: int = 0
    open_dependencies: int = 0
    attempt: int = 0
    retry_count: int = 0
    reason: str = ""
    worker: str = ""
    stub: bool = False
    """Known by its id only (imported without a tasks.md); a plan that lists it fills the definition in."""

    @property
    def task_id(self) -> str:
        """Its id in the workflow."""
        return self.spec.task_id

    @property
    def ready(self) -> bool:
        """Whether it could be handed out now."""
        return self.status is TaskStatus.PENDING and self.open_dependencies == 0

    def moved(self, status: TaskStatus, reason: str = "") -> "Task":
        """The task in its next state, if the table allows it."""
        if not task_allows(self.status, status):
            raise task_forbids(self.task_id, self.status, status)
        return replace(self, status=status, reason=reason)


@dataclass(slots=True)
class Book:
    """The tasks in sight: all of them, or the slice that a batch of commands needs."""

    tasks: dict[str, Task] = field(default_factory=dict)
    dependants: dict[str, list[str]] = field(default_factory=dict)
    """As stored, or as of the last rewrite; copies share it and never change it."""
    added_dependants: dict[str, list[str]] = field(default_factory=dict)
    queue: list[tuple[int, str]] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    added: set[str] = field(default_factory=set)
    rewritten: bool = False
    """The whole plan was replaced: rows that are not in the book any more have to go."""

    def copy(self) -> "Book":
        """A book to try things out in."""
        added = {task_id: list(found) for task_id, found in self.added_dependants.items()}
        return Book(dict(self.tasks), self.dependants, added, list(self.queue))

    def show(self, tasks: Iterable[Task]) -> None:
        """Bring stored tasks into sight."""
        for task in tasks:
            self._place(task)

    def link(self, task_id: str, dependant_id: str) -> None:
        """Bring a stored dependency into sight."""
        self.dependants.setdefault(task_id, []).append(dependant_id)

    def put(self, task: Task) -> None:
        """Change a task that is in sight."""
        self._place(task)
        self.touched.add(task.task_id)

    def add(self, task: Task) -> None:
        """Take a new task in, with what it depends on."""
        self._place(task)
        self.added.add(task.task_id)
        for dependency in task.spec.depends:
            self.added_dependants.setdefault(dependency, []).append(task.task_id)

    def rewrite(self, tasks: Iterable[Task]) -> None:
        """Make these, in this order, the whole plan; how many dependencies are open is counted anew."""
        listed = list(tasks)
        settled = {task.task_id for task in listed if task.status in (TaskStatus.COMPLETED, TaskStatus.SKIPPED)}
        self.tasks, self.dependants, self.added_dependants, self.queue = {}, {}, {}, []
        self.touched, self.added, self.rewritten = set(), set(), True
        for position, task in enumerate(listed, 1):
            still_open = sum(1 for dependency in task.spec.depends if dependency not in settled)
            placed = replace(task, position=position, open_dependencies=still_open)
            self.tasks[task.task_id] = placed
            if placed.ready:
                self.queue.append((position, task.task_id))
            for dependency in task.spec.depends:
                self.link(dependency, task.task_id)

    def in_order(self) -> list[Task]:
        """The tasks in sight, in plan order."""
        return sorted(self.tasks.values(), key=lambda task: task.position)

    def with_status(self, status: TaskStatus) -> list[Task]:
        """The tasks in sight that are in this state, in plan order."""
        return [task for task in self.in_order() if task.status is status]

    def ready(self) -> Iterator[Task]:
        """The tasks that could be handed out, in plan order."""
        return (self.tasks[task_id] for _, task_id in self.queue)

    def first_ready(self) -> Task | None:
        """The next task in plan order, if one is ready."""
        return self.tasks[self.queue[0][1]] if self.queue else None

    def dependants_of(self, task_id: str) -> list[Task]:
        """The tasks that wait for this one."""
        found = (*self.dependants.get(task_id, ()), *self.added_dependants.get(task_id, ()))
        return [self.tasks[dependant] for dependant in found]

    def _place(self, task: Task) -> None:
        before = self.tasks.get(task.task_id)
        if before is not None and before.ready:
            self._leave_queue(before)
        self.tasks[task.task_id] = task
        if task.ready:
            insort(self.queue, (task.position, task.task_id))

    def _leave_queue(self, task: Task) -> None:
        entry = (task.position, task.task_id)
        index = bisect_left(self.queue, entry)
        if index < len(self.queue) and self.queue[index] == entry:
            del self.queue[index]
