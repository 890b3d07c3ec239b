"""What the store shows of a run, a lease and an agent."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pointsman.services.orchestrator.domain.enums import Capability
from pointsman.services.orchestrator.domain.landing.model import Entry
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.orchestrator.domain.schedules.model import Schedule
from pointsman.services.orchestrator.domain.waiting import NOBODY, AtWork


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as it stands in its row."""

    run: Run
    seq: int
    created_at_us: int
    updated_at_us: int
    starts: int = 0
    """Starts of agents by its leases, those included that the run does not know of yet; 0 where nobody counted."""
    at_work: AtWork = NOBODY


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How many runs of a project ask what."""

    needs_you: int
    stuck: int
    working: int
    failed: int
    done: int
    cancelled: int


@dataclass(frozen=True, slots=True)
class LeaseView:
    """A lease in an agent's hands."""

    run_id: str
    assignment_id: str
    agent_id: str
    epoch: int
    attempt: int
    lease_until_us: int
    deadline_us: int
    created_at_us: int
    priority: int
    repository_id: str
    traceparent: str
    body: str
    secret: str = field(default="", repr=False)
    """What its holder has to show; it is in no row."""


@dataclass(frozen=True, slots=True)
class PollResult:
    """What an agent was given: leases, and for each of their runs the run itself and what was handed in for it."""

    leases: tuple[LeaseView, ...] = ()
    runs: Mapping[str, Run] = field(default_factory=dict)
    documents: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProviderLimit:
    """A limit of a model's provider that an agent ran into; reset_us is 0 where it does not know when that is over."""

    kind: str
    reset_us: int
    reason: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Until when an account at a model's provider rests, and why."""

    until_us: int
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class BranchHead:
    """Where a branch is."""

    branch: str
    commit: str


@dataclass(frozen=True, slots=True)
class OfferedRepository:
    """A repository of a worker, as people know it, and where its branches are."""

    id: str
    name: str = ""
    branch: str = ""
    head: str = ""
    verify: tuple[str, ...] = ()
    branches: tuple[BranchHead, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent that polled."""

    agent_id: str
    capabilities: tuple[Capability, ...]
    last_seen_us: int
    repository_ids: tuple[str, ...] = ()
    account: str = ""
    offers: tuple[OfferedRepository, ...] = ()
    principal: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """A piece of output under a lease, as its agent sent it."""

    assignment_id: str
    epoch: int
    agent_id: str
    offset: int
    text: str
    transcript_sha256: str = ""
    transcript_bytes: int = 0


@dataclass(frozen=True, slots=True)
class EntryView:
    """An entry of a merge queue as it stands in its row."""

    entry: Entry
    seq: int
    created_at_us: int
    updated_at_us: int


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """A schedule as it stands in its row."""

    schedule: Schedule
    seq: int
    created_at_us: int
    updated_at_us: int


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Which entries a list shows."""

    project: str
    states: tuple[str, ...] = ()
    repository_id: str = ""
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class Integrator:
    """Who asks for a merge queue, and for which repositories."""

    project: str
    principal: str
    agent_id: str
    repository_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """A merge queue in an integrator's hands, with its first entries."""

    queue_id: str
    epoch: int
    until_us: int
    entries: tuple[EntryView, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The present tree of an assignment, as a commit on its base."""

    assignment_id: str
    run_id: str
    base_commit: str
    commit: str
    bundle: bytes
    task_id: str = ""
    declared_files: tuple[str, ...] = ()
    at_us: int = 0


@dataclass(frozen=True, slots=True)
class LiveTrees:
    """Snapshots of a repository, when the newest was put, and whether bundles had to be left out."""

    snapshots: tuple[Snapshot, ...]
    as_of_us: int
    more: bool = False


@dataclass(frozen=True, slots=True)
class Prediction:
    """Two pieces of work whose trees conflict, or whose plans name the same files."""

    run_id: str
    other_run_id: str
    files: tuple[str, ...]
    at_us: int = 0
    task_id: str = ""
    other_task_id: str = ""
    declared: bool = False
