"""The project file as values, with the default of every key."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pointsman._shared.hours import Hours
from pointsman.project.command_line import Command

SETUP_SECONDS = 900
PROOF_SECONDS = 600


@dataclass(frozen=True, slots=True)
class WorkspaceSection:
    """`[workspace]`: how a fresh tree becomes able to build and test."""

    setup: tuple[Command, ...] = ()
    include: tuple[str, ...] = ()
    cache: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    ports: int = 0
    services: Mapping[str, Command | None] = field(default_factory=lambda: MappingProxyType({}))
    """Name to the command that starts it; None for a service that is known by its name."""
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    timeout: int = SETUP_SECONDS
    """Seconds for all set-up commands together."""


@dataclass(frozen=True, slots=True)
class ProofSection:
    """`[proof]`: what proves the work."""

    verify: tuple[Command, ...] = ()
    protect: tuple[str, ...] = ()
    network: bool = False
    repeat: int = 1
    timeout: int = PROOF_SECONDS
    """Seconds for one verify command."""


@dataclass(frozen=True, slots=True)
class CrewMember:
    """Who plays a role."""

    agent: str
    parallel: int = 0
    """How many at the same time; 0 leaves it to the default: two coders, one of every other role."""
    best_of: int = 1


@dataclass(frozen=True, slots=True)
class Crew:
    """`[crew]`: who plays which role."""

    planner: CrewMember | None = None
    researcher: CrewMember | None = None
    designer: CrewMember | None = None
    coder: CrewMember | None = None
    reviewer: CrewMember | None = None
    critic: CrewMember | None = None
    resolver: CrewMember | None = None
    fallback: tuple[str, ...] = ()
    ask_before: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Budget:
    """`[budget]`: what a run may use; 0 leaves it to the orchestrator."""

    cost_usd: float = 0.0
    minutes: int = 0
    assignments: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class DeliverSection:
    """`[deliver]`: where accepted work goes, and which remote and branches may be touched."""

    onto: str = ""
    branches: tuple[str, ...] = ()
    push: str = ""
    """A remote; empty for the branch of the repository itself."""
    pr: bool = False
    squash: bool = False
    stack: bool = False
    auto: bool = False


@dataclass(frozen=True, slots=True)
class NotifySection:
    """`[notify]`: who learns that a run asks, and when; no command, because a change of the file must not run one."""

    webhook: str = ""
    slack: str = ""
    ntfy: str = ""
    secret_file: str = ""
    console: str = ""
    quiet: Hours | None = None
    digest_minutes: int = 0
    escalate: str = ""
    escalate_minutes: int = 0


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A whole `pointsman.toml`."""

    workspace: WorkspaceSection = field(default_factory=WorkspaceSection)
    proof: ProofSection = field(default_factory=ProofSection)
    crew: Crew = field(default_factory=Crew)
    budget: Budget = field(default_factory=Budget)
    deliver: DeliverSection = field(default_factory=DeliverSection)
    notify: NotifySection = field(default_factory=NotifySection)
    given: frozenset[str] = frozenset()
    """The keys that the file names, such as `proof.verify`; all others have their default."""
