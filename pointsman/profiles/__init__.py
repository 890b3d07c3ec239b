"""Profiles of command-line agents: one data file, read once."""

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path


class PromptBy(StrEnum):
    """How an agent gets its prompt."""

    STDIN = "stdin"
    ARGUMENT = "argument"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Profile:
    """How to run one command-line agent."""

    name: str
    command: tuple[str, ...]
    prompt: PromptBy = PromptBy.FILE
    environment: tuple[str, ...] = ()
    login: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    moved_by: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    handoff_inside: bool = False
    output: str = ""
    protocol: str = ""
    sandbox: tuple[str, str] = ("", "")
    success: tuple[int, ...] = (0,)
    about: str = ""


@cache
def profiles() -> dict[str, Profile]:
    """The profiles that come with Pointsman, by name."""
    with (Path(__file__).parent / "agents.toml").open("rb") as file:
        read = tomllib.load(file)
    return {name: _profile(name, fields) for name, fields in read.items()}


def _profile(name: str, fields: dict[str, str | bool | list[str]]) -> Profile:
    lists = {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
    inside = bool(fields.get("handoff_inside"))
    prompt = PromptBy(str(fields["prompt"]))
    words = {"about": str(fields["about"]), "output": str(fields.get("output", ""))}
    words["protocol"] = str(fields.get("protocol", ""))
    return Profile(name, prompt=prompt, handoff_inside=inside, **words, **lists)  # type: ignore[arg-type]
