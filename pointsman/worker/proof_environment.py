"""Furnishes the sandbox of a proof: the environment that set-up made for the base, and what the project file allows."""

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

from pointsman.project import ProjectFile
from pointsman.project.download_copies import PrivateDownloads
from pointsman.project.ecosystems import manifest_names
from pointsman.project.environments import Environment, EnvironmentStore
from pointsman.project.includes import copy_includes, digest_includes
from pointsman.project.outputs import TreeRefused
from pointsman.project.setup_plan import SetupPlan, plan_setup
from pointsman.project.setup_run import SetupFailed
from pointsman.project.shown_places import require_harmless
from pointsman.proof.execution import Furnish, Furnishing
from pointsman.proof.protection.manifests import split_manifest
from pointsman.proof.protection.rules import default_table
from pointsman.proof.snapshot import Repository, Snapshot
from pointsman.sandbox import Level, Limits, available_level
from pointsman.worker.base_project import source_at
from pointsman.worker.ports import lease_services

ENVIRONMENTS = "environments"
OUTPUT_BYTES = 16 * 1024 * 1024
SOURCE_FOLDER = "src"
CODE = frozenset(
    {"setup.py", ".pnpmfile.cjs", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"}
)
"""Manifests that are programs: those of a delivery are never run by set-up."""
ENOUGH_PROCESSORS = 2
PAIRS_AFTER_SECONDS = 5.0
PAIRS_AFTER_SECONDS_WITH_SETUP = 30.0
"""With set-up a second run at the same time needs a second environment, which a short command is not worth."""
Say = Callable[[str], None]


class DeliveryNotInstallable(SetupFailed):
    """A set-up that works on the base, and fails with the dependencies or the files of a delivery."""


@dataclass(frozen=True, slots=True)
class ProofBase:
    """The commit that proofs start from, in a private clone, with its project file and the user's working tree."""

    repository: Repository
    commit: str
    project: ProjectFile
    user_folder: Path | None = None


class ProofEnvironments:
    """Environments for proofs below a worker's root; `hidden` is what no set-up and no proof sees."""

    def __init__(self, root: Path, hidden: Sequence[Path] = ()) -> None:
        self._store = EnvironmentStore(root / ENVIRONMENTS, hidden)
        self._hidden = tuple(hidden)

    async def plan(self, base: ProofBase, changed: Mapping[str, bytes] | None = None) -> SetupPlan:
        """The set-up of a base, with manifests whose dependencies a delivery changed."""
        workspace = base.project.workspace
        require_harmless(workspace, self._hidden)
        plan = await plan_setup(workspace, await source_at(base.repository.path, base.commit), changed)
        if base.user_folder is None or not workspace.include:
            return plan
        return replace(plan, source_id=f"{plan.source_id} {digest_includes(base.user_folder, workspace.include)}")

    async def copy_downloads(self, base: ProofBase, target: Path, say: Say) -> PrivateDownloads:
        """Copies what set-up of a base downloaded and built into a folder of an agent."""
        return await self._store.copy_downloads(await self.plan(base), partial(_fill, base), target, say)

    def furnisher(self, base: ProofBase, say: Say) -> Furnish:
        """Furnishes the sandbox of each tree that is proven on a base; SetupFailed when set-up does not work."""

        @asynccontextmanager
        async def furnish(snapshot: Snapshot) -> AsyncIterator[Furnishing]:
            changed = await changed_manifests(base, snapshot) if base.project.workspace.setup else {}
            async with self._lent(base, changed, say) as environment:
                with lease_services(base.project.workspace) as leased:
                    made = self._furnishing(base, environment, snapshot)
                    yield replace(made, environment={**made.environment, **leased.variables}, services=leased.services)

        return furnish

    @asynccontextmanager
    async def _lent(self, base: ProofBase, changed: Mapping[str, bytes], say: Say) -> AsyncIterator[Environment]:
        """The environment of a delivery; one that its own dependencies break is the delivery's fault."""
        fill, is_lent = partial(_fill, base), False
        try:
            async with self._store.lend(await self.plan(base, changed), fill, say) as environment:
                is_lent = True
                yield environment
        except SetupFailed as error:
            if is_lent or not changed:
                raise
            async with self._store.lend(await self.plan(base), fill, say):
                names = ", ".join(sorted(changed))
            raise DeliveryNotInstallable(f"the dependencies that the work names in {names}: {error}") from None

    def _furnishing(self, base: ProofBase, environment: Environment, snapshot: Snapshot) -> Furnishing:
        proof = base.project.proof
        return Furnishing(
            environment=environment.variables(),
            readable=environment.readable,
            writable=environment.writable,
            hidden=self._hidden,
            network=proof.network,
            limits=replace(Limits(), seconds=float(proof.timeout), output_bytes=OUTPUT_BYTES),
            tree=environment.tree,
            is_movable=not environment.outputs and not base.project.workspace.include,
            prepare=partial(_prepare, base, environment),
            python_path=_python_path(environment.tree, snapshot),
        )


def pairs_after_seconds(project: ProjectFile) -> float | None:
    """How long a command takes before two of its runs share the machine; None where they could meet, or have no room."""
    alone = project.proof.network or available_level() < Level.NAMESPACES
    if alone or (os.cpu_count() or 1) < ENOUGH_PROCESSORS:
        return None
    return PAIRS_AFTER_SECONDS_WITH_SETUP if project.workspace.setup else PAIRS_AFTER_SECONDS


async def changed_manifests(base: ProofBase, snapshot: Snapshot) -> dict[str, bytes]:
    """Manifests and lock files that differ from the base's, each with the delivery's dependencies and nothing else of it.

    A manifest that is code (setup.py, build.gradle) stays the base's.
    """
    before = await base.repository.snapshot(base.commit)
    found = {}
    for path in manifest_names(snapshot.entries, base.project.workspace.setup):
        if snapshot.entries[path] != before.entries.get(path) and PurePosixPath(path).name not in CODE:
            old = await base.repository.read(before.entries.get(path))
            content = _with_dependencies(path, old, await base.repository.read(snapshot.entries[path]))
            if content is not None and content != old:
                found[path] = content
    return found


def _with_dependencies(path: str, old: bytes | None, new: bytes | None) -> bytes | None:
    """The base's manifest with the dependencies of a delivery."""
    table = default_table()
    protection = table.protection(path)
    if protection is None or protection.manifest is None:
        return new if table.is_lock(path) else old
    split = split_manifest(old, new, protection.manifest)
    return split.content if split.dependency_keys or split.other_changed else old


async def _fill(base: ProofBase, folder: Path) -> None:
    """Checks the base out for its set-up."""
    snapshot = await base.repository.snapshot(base.commit)
    await base.repository.check_out(snapshot, folder, folder.with_name("index"))
    _include(base, folder)


def _prepare(base: ProofBase, environment: Environment) -> None:
    try:
        environment.attach()
    except TreeRefused as error:
        raise DeliveryNotInstallable(f"the tree cannot be set up: {error}") from None
    _include(base, environment.tree)


def _include(base: ProofBase, tree: Path) -> None:
    if base.user_folder is not None:
        copy_includes(base.user_folder, tree, base.project.workspace.include)


def _python_path(tree: Path, snapshot: Snapshot) -> tuple[Path, ...]:
    """The folder of a Python package in the src layout: an installed copy, or the user's clone, must not come first."""
    paths = [PurePosixPath(name) for name in snapshot.entries if name.endswith(".py")]
    return (tree / SOURCE_FOLDER,) if any(path.parts[0] == SOURCE_FOLDER for path in paths) else ()
