"""Small real repositories to work on."""

from pathlib import Path

from pointsman.worker.git import Clone, git, text


async def repository(folder: Path, files: dict[str, str]) -> str:
    """A repository with one commit of these files; returns the commit."""
    await git(folder.parent, "init", "-q", "-b", "main", str(folder))
    return await commit(folder, files)


async def commit(folder: Path, files: dict[str, str]) -> str:
    """One more commit with these files."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    await git(folder, "add", "-A")
    await git(folder, "commit", "-q", "-m", "change")
    return await text(folder, "rev-parse", "HEAD")


async def clone_of(folder: Path, place: Path) -> Clone:
    """A worker's private clone."""
    clone = Clone(place / "private.git", folder)
    await clone.prepare()
    return clone
