"""Every key of the project file: how it is read, and what it is for."""

from collections.abc import Mapping
from dataclasses import dataclass

from pointsman.project import values
from pointsman.project.values import Reader


@dataclass(frozen=True, slots=True)
class Key:
    """One key."""

    read: Reader
    about: str


_COMMANDS = values.list_of(values.command, "commands")
_TREE_PATHS = values.list_of(values.path_in_tree, "paths")
_FOLDERS = values.list_of(values.path_on_machine, "folders")
_MEMBER_NOTE = "Who plays it: an agent's name, or { agent, parallel, best_of }."

WORKSPACE: Mapping[str, Key] = {
    "setup": Key(_COMMANDS, "Commands that make a fresh tree able to build and test, in their order."),
    "include": Key(_TREE_PATHS, "Files that git ignores and a tree needs; globs. `.worktreeinclude` is read too."),
    "cache": Key(_FOLDERS, "Folders of downloads that set-up may read."),
    "read": Key(_FOLDERS, "Folders outside the tree that agents and proofs may read."),
    "ports": Key(values.integer(0, 64), "Ports of its own for each assignment."),
    "services": Key(values.services, "Servers of its own for each agent and each command of a proof."),
    "env": Key(values.variables, "Variables for set-up, agents and proofs."),
    "timeout": Key(values.integer(1, 86_400), "Seconds for all set-up commands together."),
}
PROOF: Mapping[str, Key] = {
    "verify": Key(_COMMANDS, "Commands that prove the work; each is proven apart."),
    "protect": Key(_TREE_PATHS, "Files that an author of work may not change unseen, beside those always protected."),
    "network": Key(values.flag, "Whether proofs may connect."),
    "repeat": Key(values.integer(1, 20), "How often the base's tests run on the delivered code."),
    "timeout": Key(values.integer(1, 86_400), "Seconds for one verify command."),
}
CREW: Mapping[str, Key] = {
    "planner": Key(values.member, _MEMBER_NOTE),
    "researcher": Key(values.member, _MEMBER_NOTE),
    "designer": Key(values.member, _MEMBER_NOTE),
    "coder": Key(values.member, _MEMBER_NOTE),
    "reviewer": Key(values.member, _MEMBER_NOTE),
    "critic": Key(values.member, _MEMBER_NOTE),
    "resolver": Key(values.member, _MEMBER_NOTE),
    "fallback": Key(values.list_of(values.text, "agents"), "Agents that take over."),
    "ask_before": Key(values.list_of(values.tool_kind, "kinds of tool calls"), "What agents by ACP ask a person for."),
}
BUDGET: Mapping[str, Key] = {
    "cost_usd": Key(values.amount, "Dollars that agents may report."),
    "minutes": Key(values.integer(1, 525_600), "Minutes that a run may take."),
    "assignments": Key(values.integer(1, 1_000_000), "Starts of agents."),
    "tokens": Key(values.integer(1, 10**12), "Tokens that agents may report."),
}
DELIVER: Mapping[str, Key] = {
    "onto": Key(values.branch, "The branch that accepted work goes to; `pointsman deliver` lands on it."),
    "branches": Key(values.list_of(values.text, "branches"), "Branches that may be landed on besides; globs."),
    "push": Key(values.text, "The remote whose branch it is, and the only one that may be pushed to."),
    "pr": Key(values.flag, "Whether a pull request is opened instead of a fast-forward."),
    "squash": Key(values.flag, "Whether a run becomes one commit."),
    "stack": Key(values.flag, "Whether each task becomes a pull request of its own, on the one below."),
    "auto": Key(values.flag, "Whether `pointsman run` puts its work into the queue by itself."),
}
NOTIFY: Mapping[str, Key] = {
    "webhook": Key(values.web_address, "Address that takes JSON about each question."),
    "slack": Key(values.web_address, "Address of an incoming webhook of Slack."),
    "ntfy": Key(values.web_address, "Address of a topic of ntfy."),
    "secret_file": Key(
        values.path_on_machine, "File with the secret that signs notices; it is never in the repository."
    ),
    "console": Key(values.web_address, "Address of the console, for links to the question."),
    "quiet": Key(values.hours, "Hours without notices, in the machine's time zone; they come afterwards."),
    "digest_minutes": Key(values.integer(1, 1440), "Minutes for which questions are gathered for one notice."),
    "escalate": Key(values.web_address, "Address of a second receiver of the same kind."),
    "escalate_minutes": Key(values.integer(1, 10_080), "Minutes without an answer after which it is notified."),
}
SECTIONS: Mapping[str, Mapping[str, Key]] = {
    "workspace": WORKSPACE,
    "proof": PROOF,
    "crew": CREW,
    "budget": BUDGET,
    "deliver": DELIVER,
    "notify": NOTIFY,
}
