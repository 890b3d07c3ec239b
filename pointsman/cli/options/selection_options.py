"""Options that select runs: by state, label, age and words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

import typer

from pointsman.api.orchestrator.v1.orchestrator_pb2 import RunSelection
from pointsman.api.orchestrator.v1.run_pb2 import RunState
from pointsman.cli.options.usage import fail_usage

AGE = re.compile(r"(\d{1,6})([mhdw])")
UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
StateOption = Annotated[
    list[str] | None, typer.Option("--state", help="All runs in this state, instead of one; several times.")
]
LabelOption = Annotated[
    list[str] | None, typer.Option("--label", metavar="KEY=VALUE", help="All runs with this label; several times.")
]
OlderOption = Annotated[
    str, typer.Option("--older", metavar="2d", help="All runs that are older: m, h, d or w behind a number.")
]
MatchOption = Annotated[str, typer.Option("--match", help="All runs with all of these words.")]
YesOption = Annotated[
    bool, typer.Option("--yes", help="With a selection: do it; without, it is only said what would be done.")
]


@dataclass(frozen=True, slots=True)
class Selected:
    """The runs that the options of a command select."""

    states: Sequence[str] = ()
    labels: Sequence[str] = ()
    older: str = ""
    match: str = ""

    @property
    def is_given(self) -> bool:
        """Whether any option selects."""
        return bool(self.states or self.labels or self.older or self.match)

    def require_one_way(self, run_id: str) -> None:
        """Ends the command unless it names either a run or a selection."""
        if bool(run_id) is self.is_given:
            fail_usage("name one run, or select runs with --state, --label, --older or --match; not both")

    def message(self, now: datetime) -> RunSelection:
        """The selection as the control plane takes it; nothing that is submitted from now on is in it."""
        names = [f"RUN_STATE_{name.upper()}" for name in self.states]
        for name in names:
            if name not in RunState.keys():  # noqa: SIM118 - an enum wrapper, not a dict
                fail_usage(f"there is no state '{name.removeprefix('RUN_STATE_')}'; `pointsman machine` lists them")
        labels = dict(_label(one) for one in self.labels)
        found = RunSelection(states=[RunState.Value(name) for name in names], labels=labels, text=self.match)
        found.created_before.FromDatetime(now - parse_age("--older", self.older))
        return found


def _label(given: str) -> tuple[str, str]:
    key, equals, value = given.partition("=")
    if not key or not equals:
        fail_usage(f"--label takes KEY=VALUE, not '{given}'")
    return key, value


def parse_age(option: str, given: str) -> timedelta:
    """A length of time such as `2d`; none where nothing is given."""
    found = AGE.fullmatch(given.strip()) if given else None
    if given and found is None:
        fail_usage(f"{option} takes a number with m, h, d or w, for example 2d; not '{given}'")
    return timedelta(**{UNITS[found[2]]: int(found[1])}) if found else timedelta()
