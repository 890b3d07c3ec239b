"""The tree of a judge: the author's work, without what would furnish the judge's own room.

A command-line agent reads settings of the tree that it is started in: hooks that it runs, servers that it starts, the
address of its model. Programs of a tree's own environment come first on its PATH. Of all that a judge gets what the
user's commit has, never what the author of the work made of it.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath

from pointsman.proof.snapshot import Repository
from pointsman.worker.git import Clone
from pointsman.worker.handoff import HandoffFile
from pointsman.worker.quoting import inline

FURNISHING = frozenset(
    {
        "agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md", "qwen.md", "copilot-instructions.md",
        ".claude", ".codex", ".agents", ".gemini", ".qwen", ".opencode", "opencode.json", "opencode.jsonc", ".mcp.json",
        ".aider.conf.yml", ".aider.model.settings.yml", ".aider.model.metadata.json", ".cursor", ".cursorrules",
        ".windsurf", ".windsurfrules", ".copilot", ".augment", ".augment-guidelines", ".cline", ".clinerules", ".goose",
        ".goosehints", ".kilo", ".kilocode", ".kilocoderules", ".kilocodemodes", "kilo.json", "kilo.jsonc", ".roo",
        ".roorules", ".roomodes", ".env", ".env.local", ".env.development", ".env.development.local", ".env.production",
        ".env.production.local", ".envrc", "mise.toml", ".mise.toml", ".tool-versions", "bunfig.toml", ".npmrc",
        ".yarnrc", ".yarnrc.yml", ".pointsman-handoff", ".venv", "venv", "node_modules",
        # what an agent does not look at
        ".aiderignore", ".aiexclude", ".augmentignore", ".claudeignore", ".clineignore", ".codexignore", ".copilotignore",
        ".cursorignore", ".fdignore", ".geminiignore", ".gooseignore", ".ignore", ".kilocodeignore", ".opencodeignore",
        ".qwenignore", ".rgignore", ".rooignore",
    }
)  # fmt: skip
"""Names of files and folders, anywhere in a tree, in small letters."""
FURNISHING_PAIRS = frozenset(
    {(".github", name) for name in ("instructions", "agents", "prompts", "chatmodes", "hooks", "skills", "copilot")}
)
"""The same for folders below another: what Copilot reads."""
PUT_BACK = "put_back.md"
SUBJECT = "Put back what sets a judge up"


@dataclass(frozen=True, slots=True)
class JudgedTree:
    """The commit that a judge sees, and the files in which it differs from the work."""

    commit: str
    put_back: tuple[str, ...] = ()

    def files(self) -> list[HandoffFile]:
        """A note for the judge about these files."""
        if not self.put_back:
            return []
        about = "files of this work that set agents up; judge them too, your tree does not have them"
        return [HandoffFile(PUT_BACK, about, _listing(self.put_back))]


def _listing(paths: Sequence[str]) -> str:
    head = "The work changes these files, which set agents up. Your tree has the user's; `git show HEAD~1:PATH` shows the author's.\n\n"
    return head + "".join(f"- {inline(path)}\n" for path in paths)


def furnishes(path: str) -> bool:
    """Whether an agent that is started in the tree would be set up by a file."""
    parts = [part.casefold() for part in PurePosixPath(path).parts]
    return not FURNISHING.isdisjoint(parts) or not FURNISHING_PAIRS.isdisjoint(pairwise(parts))


async def judged_tree(clone: Clone, base: str, made: str) -> JudgedTree:
    """The work as a judge gets it: on top of it, where that is needed, a commit with the user's own settings."""
    repository = Repository(clone.path)
    before, after = await repository.snapshot(base), await repository.snapshot(made)
    changed = tuple(path for path in before.changed_to(after) if furnishes(path))
    if not changed:
        return JudgedTree(made)
    put = {path: before.entries[path] for path in changed if path in before.entries}
    composed = await repository.compose(after, put, [path for path in changed if path not in put])
    return JudgedTree(await clone.commit_tree(composed.tree, made, SUBJECT), changed)


@asynccontextmanager
async def files_of(clone: Clone, tree: Path, commit: str, head: str) -> AsyncIterator[None]:
    """A tree with the files of another commit during the block: a judge's is set up before the author's files are there."""
    if commit == head:
        yield
        return
    await clone.replace_files(tree, head, commit)
    yield
    await clone.replace_files(tree, commit, head)
