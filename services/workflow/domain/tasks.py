"""Tasks: as planned (`TaskSpec`), with their state (`Task`), and those that a decision has loaded (`LoadedTasks`)."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from pointsman.services.workflow.domain.enums import SETTLED_TASKS, TaskStatus
from pointsman.services.workflow.domain.transitions import task_allows, task_forbids

COMMIT_ACTION = "git_commit"


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task as planned."""

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
    """A task with its state."""

    spec: TaskSpec
    status: TaskStatus = TaskStatus.PENDING
    position: int = 0
    open_dependencies: int = 0
    attempt: int = 0
    retry_count: int = 0
    reason: str = ""
    worker: str = ""
    stub: bool = False
    """Only the id is known (imported without a tasks.md); a plan that lists the task adds the rest."""

    @property
    def task_id(self) -> str:
        """The id, unique within the workflow."""
        return self.spec.task_id

    @property
    def ready(self) -> bool:
        """Whether it can be handed out now."""
        return self.status is TaskStatus.PENDING and self.open_dependencies == 0

    def moved(self, status: TaskStatus, reason: str = "") -> "Task":
        """The task in its next state, if the table allows it."""
        if not task_allows(self.status, status):
            raise task_forbids(self.task_id, self.status, status)
        return replace(self, status=status, reason=reason)


@dataclass(slots=True)
class LoadedTasks:
    """The tasks that are loaded: all of a workflow, or those that a batch of commands needs."""

    by_id: dict[str, Task] = field(default_factory=dict)
    dependants: dict[str, list[str]] = field(default_factory=dict)
    """As loaded, or as of the last `replace_all`; copies share it and never change it."""
    added_dependants: dict[str, list[str]] = field(default_factory=dict)
    ready_queue: list[tuple[int, str]] = field(default_factory=list)
    updated: set[str] = field(default_factory=set)
    added: set[str] = field(default_factory=set)
    replaced: bool = False
    """Whether the whole plan was replaced: the store deletes the rows of tasks that are gone."""

    def copy(self) -> "LoadedTasks":
        """A copy that can be changed without changing this one."""
        added = {task_id: list(found) for task_id, found in self.added_dependants.items()}
        return LoadedTasks(dict(self.by_id), self.dependants, added, list(self.ready_queue))

    def load(self, tasks: Iterable[Task]) -> None:
        """Adds tasks that the store has read."""
        for task in tasks:
            self._place(task)

    def add_dependant(self, task_id: str, dependant_id: str) -> None:
        """Adds a stored edge: the dependant waits for the task."""
        self.dependants.setdefault(task_id, []).append(dependant_id)

    def update(self, task: Task) -> None:
        """Replaces a loaded task by its new state."""
        self._place(task)
        self.updated.add(task.task_id)

    def add(self, task: Task) -> None:
        """Adds a new task with its dependencies."""
        self._place(task)
        self.added.add(task.task_id)
        for dependency in task.spec.depends:
            self.added_dependants.setdefault(dependency, []).append(task.task_id)

    def replace_all(self, tasks: Iterable[Task]) -> None:
        """Makes these tasks, in this order, the whole plan, and counts their open dependencies."""
        listed = list(tasks)
        settled = {task.task_id for task in listed if task.status in SETTLED_TASKS}
        self.by_id, self.dependants, self.added_dependants, self.ready_queue = {}, {}, {}, []
        self.updated, self.added, self.replaced = set(), set(), True
        for position, task in enumerate(listed, 1):
            still_open = sum(1 for dependency in task.spec.depends if dependency not in settled)
            placed = replace(task, position=position, open_dependencies=still_open)
            self.by_id[task.task_id] = placed
            if placed.ready:
                self.ready_queue.append((position, task.task_id))
            for dependency in task.spec.depends:
                self.add_dependant(dependency, task.task_id)

    def in_order(self) -> list[Task]:
        """The loaded tasks in plan order."""
        return sorted(self.by_id.values(), key=lambda task: task.position)

    def with_status(self, status: TaskStatus) -> list[Task]:
        """The loaded tasks in this state, in plan order."""
        return [task for task in self.in_order() if task.status is status]

    def ready(self) -> Iterator[Task]:
        """The tasks that could be handed out, in plan order."""
        return (self.by_id[task_id] for _, task_id in self.ready_queue)

    def first_ready(self) -> Task | None:
        """The next task in plan order, if one is ready."""
        return self.by_id[self.ready_queue[0][1]] if self.ready_queue else None

    def dependants_of(self, task_id: str) -> list[Task]:
        """The tasks that wait for this one."""
        found = (*self.dependants.get(task_id, ()), *self.added_dependants.get(task_id, ()))
        return [self.by_id[dependant] for dependant in found]

    def _place(self, task: Task) -> None:
        before = self.by_id.get(task.task_id)
        if before is not None and before.ready:
            self._leave_queue(before)
        self.by_id[task.task_id] = task
        if task.ready:
            insort(self.ready_queue, (task.position, task.task_id))

    def _leave_queue(self, task: Task) -> None:
        entry = (task.position, task.task_id)
        index = bisect_left(self.ready_queue, entry)
        if index < len(self.ready_queue) and self.ready_queue[index] == entry:
            del self.ready_queue[index]
