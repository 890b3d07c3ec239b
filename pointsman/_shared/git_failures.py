"""Explanations of failed git commands: the cause, the way out, and the message of git itself."""

from collections.abc import Sequence

EXCERPT_LENGTH = 1000
ACTIVITIES = {
    "add": "taking the files of the working tree",
    "bundle": "packing the work",
    "cat-file": "reading from the repository",
    "check-ignore": "looking for ignored files",
    "checkout": "writing the working tree",
    "clone": "copying the repository",
    "commit": "making a commit",
    "commit-tree": "making a commit",
    "diff": "comparing commits",
    "diff-tree": "comparing commits",
    "fetch": "fetching commits",
    "for-each-ref": "looking for branches",
    "grep": "searching the repository",
    "init": "making a repository",
    "log": "reading the history",
    "ls-files": "listing files",
    "ls-tree": "listing the files of a commit",
    "merge-base": "looking for a common commit",
    "merge-tree": "merging",
    "read-tree": "reading a commit",
    "rev-list": "reading the history",
    "rev-parse": "looking up a commit",
    "status": "looking for uncommitted changes",
    "update-ref": "setting a branch",
    "write-tree": "taking the files of the working tree",
}
CAUSES = (
    (
        "lacks these prerequisite commits",
        "the work builds on a commit that is not in this repository; go to the one that the run worked on, or fetch it",
    ),
    ("not our ref", "the commit is not in the repository; fetch or push it there first"),
    ("couldn't find remote ref", "the commit is not in the repository; fetch or push it there first"),
    ("fatal: repository '", "the repository has been moved or removed; name it with --repo"),
    ("does not exist", "the commit or file is not in the repository; fetch it first"),
    ("no space left", "the disk is full; free some space"),
    ("disk quota exceeded", "the disk quota is used up; free some space"),
    ("dubious ownership", "the repository belongs to another user; work as that user, or on a clone of your own"),
    ("permission denied", "the files may not be read or written; change their rights, or work as their owner"),
    (
        ".lock': file exists",
        "another git command works there, or one was killed; end it, or remove the lock that is named",
    ),
    ("not a git repository", "the folder is in no git repository; go into one, or make one with `git init`"),
    ("does not appear to be a git repository", "the repository has been moved or removed; name it with --repo"),
    ("unknown revision", "there is no such commit in the repository; fetch it first"),
    ("bad object", "the commit is not in the repository, or not whole; fetch it again"),
    ("object file", "the repository is damaged; `git fsck` names what is missing"),
    ("cannot lock ref", "a branch stands in the way; delete or rename it, or choose another name"),
)
"""What git says, and what that means for a person; the first that fits counts."""
NOT_INSTALLED = "git is not installed, or not on the PATH; `pointsman doctor` says which git is needed"


def explain_failure(arguments: Sequence[str], exit_code: int, errors: str) -> str:
    """Why a git command failed."""
    verb = next((word for word in arguments if word in ACTIVITIES), next(iter(arguments), ""))
    message = errors.strip()[-EXCERPT_LENGTH:]
    low = message.lower()
    cause = next((words for sign, words in CAUSES if sign in low), "")
    doing = f"{ACTIVITIES.get(verb, f'git {verb}')} failed"
    if cause:
        return f"{doing}: {cause} (git {verb}: {message})"
    if message:
        return f"{doing} (git {verb}: {message})"
    return f"{doing}, and git did not say why (git {verb}, exit code {exit_code})"


def explain_timeout(arguments: Sequence[str], seconds: float) -> str:
    """Why a git command was stopped."""
    verb = next((word for word in arguments if word in ACTIVITIES), next(iter(arguments), ""))
    return f"{ACTIVITIES.get(verb, f'git {verb}')} took longer than {seconds:g} s and was stopped (git {verb})"
