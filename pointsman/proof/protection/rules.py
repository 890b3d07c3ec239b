"""The table of protected files, and what it says about a path."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources

from pointsman.proof.protection.globs import first_match


class Kind(StrEnum):
    """Why a file judges the work."""

    TEST = "test"
    FIXTURE = "fixture"
    CONFIG = "config"
    CI = "ci"
    SNAPSHOT = "snapshot"
    MANIFEST = "manifest"
    COMMAND = "command"
    PROJECT = "project"


class ManifestFormat(StrEnum):
    """How a manifest is written."""

    TOML = "toml"
    INI = "ini"
    JSON = "json"
    XML = "xml"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table."""

    ecosystem: str
    kind: Kind
    paths: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class ManifestRule:
    """A manifest: which of its keys come from the base, and which name dependencies."""

    ecosystem: str
    paths: tuple[str, ...]
    format: ManifestFormat
    base: tuple[str, ...]
    dependencies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Protection:
    """What the table says about one path."""

    kind: Kind
    ecosystem: str
    why: str
    manifest: ManifestRule | None = None


@dataclass(frozen=True, slots=True)
class ProtectionTable:
    """The rows, with those that a project and its proof command add."""

    rules: tuple[Rule, ...]
    manifests: tuple[ManifestRule, ...]
    locks: tuple[str, ...]

    def protection(self, path: str) -> Protection | None:
        """Why a path is protected; None for what its author may change."""
        for rule in self.rules:
            if first_match(path, rule.paths):
                return Protection(rule.kind, rule.ecosystem, rule.why)
        for manifest in self.manifests:
            if first_match(path, manifest.paths):
                why = "its test and script keys come from the base, its dependencies from the delivery"
                return Protection(Kind.MANIFEST, manifest.ecosystem, why, manifest)
        return None

    def is_lock(self, path: str) -> bool:
        """Whether a path names dependencies alone."""
        return bool(first_match(path, self.locks))

    def extended(
        self, protect: Sequence[str] = (), command_files: Sequence[str] = (), tests: Sequence[str] = ()
    ) -> "ProtectionTable":
        """The table with a project's own globs, files that the proof command names, and files that hold tests."""
        added = (
            Rule("project", Kind.PROJECT, tuple(protect), "named by [proof] protect"),
            Rule("project", Kind.COMMAND, tuple(map(_literal, command_files)), "the proof command names it"),
            Rule("project", Kind.TEST, tuple(map(_literal, tests)), "tests in it ran on the base"),
        )
        return ProtectionTable((*self.rules, *(rule for rule in added if rule.paths)), self.manifests, self.locks)


def _literal(path: str) -> str:
    """A path as a glob that matches nothing else: the wild characters stand for themselves."""
    return path.replace("*", "?")


@cache
def default_table() -> ProtectionTable:
    """The table of the distribution."""
    text = resources.files("pointsman.proof.protection").joinpath("protected.toml").read_text(encoding="utf-8")
    document = tomllib.loads(text)
    rules = tuple(
        Rule(row["ecosystem"], Kind(row["kind"]), tuple(row["paths"]), row["why"]) for row in document["rule"]
    )
    manifests = tuple(_manifest(row) for row in document["manifest"])
    return ProtectionTable(rules, manifests, tuple(path for row in document["lock"] for path in row["paths"]))


def _manifest(row: Mapping[str, object]) -> ManifestRule:
    def words(key: str) -> tuple[str, ...]:
        value = row[key]
        return tuple(map(str, value)) if isinstance(value, list) else ()

    return ManifestRule(
        ecosystem=str(row["ecosystem"]),
        paths=words("paths"),
        format=ManifestFormat(str(row["format"])),
        base=words("base"),
        dependencies=words("dependencies"),
    )
