"""What a repository says about itself: its project file, how a fresh tree is set up, and what can be seen in it.

It owns the reader of `pointsman.toml` and of `.worktreeinclude`, the table of ecosystems, and the environments that
set-up makes for proofs, each stored under the digest of its inputs.

Invariants: a file is refused with all its problems at once; the file comes from the commit that the user submitted,
never from the tree of an agent; an environment is made from files of the base, never from one that an agent used; a
set-up that fails is no attempt at a task and no failed proof.

It never reads git (callers hand it names and contents), never judges tests, and knows no service.
"""

from pointsman.project.command_line import Command, InvalidCommand, split_command
from pointsman.project.model import (
    Budget,
    Crew,
    CrewMember,
    DeliverSection,
    ProjectFile,
    ProofSection,
    WorkspaceSection,
)
from pointsman.project.problems import InvalidProjectFile, Problem
from pointsman.project.reader import FILE_NAME, INCLUDE_FILE_NAME, read_include_file, read_project_file

__all__ = [
    "FILE_NAME",
    "INCLUDE_FILE_NAME",
    "Budget",
    "Command",
    "Crew",
    "CrewMember",
    "DeliverSection",
    "InvalidCommand",
    "InvalidProjectFile",
    "Problem",
    "ProjectFile",
    "ProofSection",
    "WorkspaceSection",
    "read_include_file",
    "read_project_file",
    "split_command",
]
