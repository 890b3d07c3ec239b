"""Plans the trees of a proof: what the author changed among protected files, and how it is undone or tried alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pointsman.proof.protection.manifests import split_manifest
from pointsman.proof.protection.rules import Kind, Protection, ProtectionTable
from pointsman.proof.protection.rust_tests import split_source, with_base_tests
from pointsman.proof.snapshot import FILE, SYMLINK, Entry, Repository, Snapshot

DOCUMENTS = (".md", ".rst", ".txt", ".adoc")
DOCUMENT_FOLDERS = ("docs/", "doc/")


class Change(StrEnum):
    """What was done to a file."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class ProtectedChange:
    """A protected file that the author changed."""

    path: str
    change: Change
    kind: Kind
    why: str
    keys: tuple[str, ...] = ()
    """Keys of a manifest that come from the base."""


@dataclass(frozen=True, slots=True)
class TreePlan:
    """The two commits, what was changed, and how the base's protected files are put back."""

    base: Snapshot
    delivered: Snapshot
    protected: tuple[ProtectedChange, ...]
    sources: tuple[str, ...]
    """Changed files that are not protected."""
    dependencies: tuple[str, ...]
    """Changed lock files and dependency keys."""
    restored: Mapping[str, Entry] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    tried: Mapping[str, Entry] = field(default_factory=dict)
    """Protected files of the delivery, to be laid over the base."""

    @property
    def changes_files(self) -> bool:
        """Whether anything changed."""
        return bool(self.protected or self.sources)

    @property
    def tests_only(self) -> bool:
        """Whether only protected files changed."""
        return bool(self.protected) and not self.sources

    @property
    def documents_only(self) -> bool:
        """Whether only documents changed."""
        changed = [*self.sources, *(change.path for change in self.protected)]
        return bool(changed) and all(_is_document(path) for path in changed)


def _is_document(path: str) -> bool:
    if "requirements" in path or path.rpartition("/")[2] == "CMakeLists.txt":
        return False
    return path.lower().endswith(DOCUMENTS) or path.startswith(DOCUMENT_FOLDERS) or path == "LICENSE"


@dataclass(slots=True)
class _Builder:
    """Collects a plan path by path."""

    repository: Repository
    base: Snapshot
    delivered: Snapshot
    protected: list[ProtectedChange] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    dependencies: list[str] = field(default_factory=list)
    restored: dict[str, Entry] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    tried: dict[str, Entry] = field(default_factory=dict)

    def change(self, path: str) -> Change:
        """What the author did to a path."""
        if path not in self.base.entries:
            return Change.ADDED
        return Change.CHANGED if path in self.delivered.entries else Change.REMOVED

    async def take(self, path: str, found: Protection) -> None:
        """Takes a protected path: the base's file comes back, or the author's addition goes."""
        if found.manifest is not None:
            await self._take_manifest(path, found)
            return
        self.protected.append(ProtectedChange(path, self.change(path), found.kind, found.why))
        self._restore(path)
        if path in self.delivered.entries:
            self.tried[path] = self.delivered.entries[path]

    def _restore(self, path: str) -> None:
        if path in self.base.entries:
            self.restored[path] = self.base.entries[path]
        else:
            self.removed.add(path)

    async def _take_manifest(self, path: str, found: Protection) -> None:
        assert found.manifest is not None
        before = await self.repository.read(self.base.entries.get(path))
        after = await self.repository.read(self.delivered.entries.get(path))
        split = split_manifest(before, after, found.manifest)
        self.dependencies += [f"{path}: {key}" for key in split.dependency_keys]
        if split.protected_keys:
            change = ProtectedChange(path, self.change(path), Kind.MANIFEST, found.why, split.protected_keys)
            self.protected.append(change)
            self.restored[path] = await self.repository.store(split.content, self._mode(path))
        self.sources += [path] if split.other_changed else []

    def _mode(self, path: str) -> str:
        entry = self.delivered.entries.get(path) or self.base.entries.get(path)
        return entry.mode if entry and entry.mode != SYMLINK else FILE

    async def take_rust(self, path: str) -> None:
        """Takes a Rust source, whose test modules come from the base."""
        before = await self._text(self.base, path)
        after = await self._text(self.delivered, path)
        merged = with_base_tests(before, after or "") if after is not None else ""
        code = [split_source(text or "").code for text in (before, after)]
        if code[0] != code[1]:
            self.sources.append(path)
        if after is not None and merged != after:
            why = "test modules of a Rust source come from the base"
            self.protected.append(ProtectedChange(path, self.change(path), Kind.TEST, why))
            self.restored[path] = await self.repository.store(merged.encode(), self._mode(path))
            self.tried[path] = await self.repository.store(
                with_base_tests(after, before or "").encode(), self._mode(path)
            )

    async def _text(self, snapshot: Snapshot, path: str) -> str | None:
        content = await self.repository.read(snapshot.entries.get(path))
        return None if content is None else content.decode(errors="replace")


async def plan_trees(repository: Repository, base: Snapshot, delivered: Snapshot, table: ProtectionTable) -> TreePlan:
    """The plan for two snapshots."""
    builder = _Builder(repository, base, delivered)
    for path in base.changed_to(delivered):
        found = table.protection(path)
        if found is not None:
            await builder.take(path, found)
        elif path.endswith(".rs"):
            await builder.take_rust(path)
        else:
            builder.sources.append(path)
        if table.is_lock(path):
            builder.dependencies.append(path)
    return TreePlan(
        base, delivered, tuple(builder.protected), tuple(builder.sources), tuple(builder.dependencies),
        builder.restored, frozenset(builder.removed), builder.tried,
    )  # fmt: skip


async def restored_tree(repository: Repository, plan: TreePlan) -> Snapshot:
    """The delivery with the base's protected files, and without the author's additions among them."""
    return await repository.compose(plan.delivered, plan.restored, plan.removed)


async def tried_tree(repository: Repository, plan: TreePlan) -> Snapshot:
    """The base's sources with the author's protected files: new tests must fail there."""
    return await repository.compose(plan.base, plan.tried, frozenset())
