"""The project file of a commit: read from git, never from a working tree, which an agent could have changed."""

from dataclasses import replace
from pathlib import Path

from pointsman.project import FILE_NAME, INCLUDE_FILE_NAME, ProjectFile, read_include_file, read_project_file
from pointsman.project.setup_plan import SourceFiles
from pointsman.worker.git import git, text

REGULAR_FILES = ("100644", "100755")
"""Modes of git."""


async def project_at(repository: Path, commit: str) -> ProjectFile:
    """The project file of a commit, all defaults without one; `.worktreeinclude` adds to its includes."""
    files = await _files_at(repository, commit, FILE_NAME, INCLUDE_FILE_NAME)
    content, included = files.get(FILE_NAME), files.get(INCLUDE_FILE_NAME)
    project = ProjectFile() if content is None else read_project_file(content)
    if included is None:
        return project
    include = tuple(dict.fromkeys((*project.workspace.include, *read_include_file(included))))
    return replace(project, workspace=replace(project.workspace, include=include))


async def _files_at(repository: Path, commit: str, *names: str) -> dict[str, bytes]:
    """The regular files of these names at the top of a commit; no links and no folders."""
    listed = (await git(repository, "ls-tree", "-z", "--full-tree", commit, "--", *names)).decode(errors="replace")
    found: dict[str, bytes] = {}
    for line in filter(None, listed.split("\0")):
        values, _, name = line.partition("\t")
        mode, _, object_id = values.split()
        if mode in REGULAR_FILES:
            found[name] = await git(repository, "cat-file", "blob", object_id)
    return found


async def source_at(repository: Path, commit: str) -> SourceFiles:
    """The regular files of a commit, as set-up reads them."""
    tree = await text(repository, "rev-parse", f"{commit}^{{tree}}")
    listed = (await git(repository, "ls-tree", "-r", "-z", "--full-tree", tree)).decode(errors="surrogateescape")
    objects = {}
    for entry in filter(None, listed.split("\0")):
        values, _, path = entry.partition("\t")
        mode, _, object_id = values.split()
        if mode in REGULAR_FILES:
            objects[path] = object_id

    async def read(name: str) -> bytes:
        return await git(repository, "cat-file", "blob", objects[name])

    return SourceFiles(frozenset(objects), read, tree)
