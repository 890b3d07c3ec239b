"""The crew of a command: who plays which role, from its options and the project file, and what nobody plays."""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pointsman.api.orchestrator.v1.orchestrator_pb2 import Crew as CrewMessage
from pointsman.cli.options.usage import fail_usage
from pointsman.cli.session.workers import CAPABILITIES, WorkerSpec, profile_for, require_program
from pointsman.profiles import Profile
from pointsman.project import Crew as ProjectCrew
from pointsman.project import CrewMember

INTERPRETER = re.compile(r"(python|node|sh|bash|zsh|ruby|perl|deno|bun)[\d.]*$")
BUILT_IN = ("verifier", "surveyor")
BY_AGENT = ("planner", "researcher", "coder", "reviewer")
"""The roles that --agent plays."""
PLAYED = ("planner", "researcher", "designer", "coder", "reviewer", "critic", "resolver")
DEFAULT_PARALLEL = 2
COMMAND = "cmd:"
WITHOUT: Mapping[str, str] = {
    "planner": "the work is one task for one coder",
    "researcher": "what the plan asks is answered by a survey of the repository",
    "reviewer": "what no command proves is for you to accept",
}
"""What follows when nobody plays a role."""


@dataclass(frozen=True, slots=True)
class CrewOptions:
    """Who plays which role, as the options of a command say."""

    agent: str = ""
    command: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Role to an agent's name or `cmd:` with a command line; empty where the option is not given."""
    parallel: int = 0
    solo: bool = False
    share: bool = False
    env: Sequence[str] = ()
    read: Sequence[Path] = ()
    best_of: int = 0

    def named(self) -> dict[str, str]:
        """Who plays each role that the options name; ends the command where they contradict each other."""
        given = {role: who for role, who in self.roles.items() if who}
        if self.agent and self.command:
            fail_usage("--agent and --command both name the agent; give one of them")
        if self.command and "coder" in given:
            fail_usage("--coder and --command both name the coder; give one of them")
        if self.solo and (self.parallel or self.best_of > 1 or given.keys() - {"coder"}):
            fail_usage("--solo is one coder on one task; leave --parallel, --best-of and the other roles out")
        by_agent = dict.fromkeys(("coder",) if self.solo else BY_AGENT, self.agent) if self.agent else {}
        by_command = {"coder": f"{COMMAND}{self.command}"} if self.command else {}
        return {**by_agent, **by_command, **given}


@dataclass(frozen=True, slots=True)
class Crew:
    """Who plays which role of a run, and on which terms."""

    members: Mapping[str, str] = field(default_factory=dict)
    """Role to an agent's name, or to `cmd:` with a command line."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many play a role at the same time; one where it does not say."""
    solo: bool = False
    share: bool = False
    env: tuple[str, ...] = ()
    read: tuple[Path, ...] = ()
    best_of: int = 1
    """How many coders do each task side by side."""
    fallback: tuple[str, ...] = ()
    """Agents that take over, in this order, while the account of a role's agent rests."""

    @property
    def parallel(self) -> int:
        """How many tasks are worked on at the same time."""
        return self.counts.get("coder", 1)

    @property
    def reserved(self) -> bool:
        """Whether the run's work is for this crew alone."""
        return "coder" in self.members and not self.share

    def specs(self) -> list[WorkerSpec]:
        """What each agent plays, with the verifier and the surveyor; ends the command if an agent cannot be had."""
        return [WorkerSpec(BUILT_IN), *map(self._spec, self.members)]

    def _spec(self, role: str) -> WorkerSpec:
        who = self.members[role]
        agent, command = ("", who.removeprefix(COMMAND)) if who.startswith(COMMAND) else (who, "")
        option = "--command" if role == "coder" else f"--{role}"
        profile = profile_for(agent, command, self.env, self.read, option)
        require_program(profile)
        return WorkerSpec(
            (role,), profile, capacity=self._capacity(role), fallback=tuple(self._stand_ins(role, profile))
        )

    def _capacity(self, role: str) -> int:
        """How many assignments an agent of a role takes at the same time."""
        return self.counts.get(role, 1) * (self.best_of if role == "coder" else 1)

    def _stand_ins(self, role: str, first: Profile | None) -> Iterator[Profile]:
        """The profiles of those who take over; one whose program is missing is left out."""
        for name in self.fallback:
            profile = profile_for(name, "", self.env, self.read, f"--{role}")
            if profile is not None and profile != first and shutil.which(profile.command[0]) is not None:
                yield profile

    def message(self) -> CrewMessage:
        """The crew as Submit takes it: no workers where no agent is brought along."""
        best_of = self.best_of if self.best_of > 1 else 0
        if not self.members:
            return CrewMessage(best_of=best_of)
        roles = (*BUILT_IN, *self.members)
        return CrewMessage(
            capabilities=[CAPABILITIES[role] for role in roles],
            reserved=self.reserved,
            parallel=self.parallel,
            best_of=best_of,
        )

    def options(self) -> tuple[str, ...]:
        """The options that name this crew."""
        given = [word for role, who in self.members.items() if role in BY_AGENT for word in (f"--{role}", who)]
        given += ["--solo"] if self.solo else ["--parallel", str(self.parallel)] if "coder" in self.members else []
        given += ["--best-of", str(self.best_of)] if self.best_of > 1 else []
        given += ["--share"] if self.share else []
        given += [word for name in self.env for word in ("--env", name)]
        return (*given, *(word for place in self.read for word in ("--read", str(place.resolve()))))

    def notes(self) -> Iterator[str]:
        """Who does what, and what follows from a role that nobody plays; nothing where no agent is brought along."""
        if "coder" not in self.members:
            return
        played = [f"{role} {_shown(who)}{self._times(role)}" for role, who in self.members.items()]
        yield f"crew: {', '.join(played)}"
        if self.solo:
            return
        for role, consequence in WITHOUT.items():
            if role not in self.members and (role != "researcher" or "planner" in self.members):
                yield f"no {role}: {consequence} (--{role} names one)"

    def _times(self, role: str) -> str:
        side_by_side = f", best of {self.best_of}" if role == "coder" and self.best_of > 1 else ""
        return (f" × {self.counts[role]}" if self.counts.get(role, 1) > 1 else "") + side_by_side


def crew_of(options: CrewOptions, project: ProjectCrew) -> Crew:
    """Who plays which role: options first, then the project file; --solo leaves all but the coder out."""
    listed: dict[str, CrewMember] = {
        role: member for role in PLAYED if isinstance(member := getattr(project, role), CrewMember)
    }
    named = {**{role: member.agent for role, member in listed.items()}, **options.named()}
    roles = ("coder",) if options.solo else PLAYED
    members = {role: named[role] for role in roles if role in named}
    counts = {role: listed[role].parallel for role in members if role in listed and listed[role].parallel}
    if "coder" in members:
        counts["coder"] = 1 if "planner" not in members else options.parallel or counts.get("coder", DEFAULT_PARALLEL)
    best_of = 1 if options.solo else options.best_of or (listed["coder"].best_of if "coder" in listed else 1)
    env, read = tuple(options.env), tuple(options.read)
    return Crew(members, counts, options.solo, options.share, env, read, best_of, project.fallback)


def _shown(who: str) -> str:
    """An agent's name; of a command line its script, or its program where it names none."""
    if not who.startswith(COMMAND):
        return who
    program, *arguments = who.removeprefix(COMMAND).split()
    script = next((word for word in arguments if not word.startswith("-")), "") if "-c" not in arguments else ""
    return Path(script if script and INTERPRETER.match(Path(program).name) else program).name
