"""Stacks: the layers of a run's work, the work of one of them on what it goes onto, and its branch."""

import re
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from pointsman._shared.git import git, text
from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.landing.messages import Story
from pointsman.landing.permissions import OWN_BRANCHES
from pointsman.landing.target import Blocked, Target

MAX_LAYERS = 100
_TASK = re.compile(r"^Pointsman-Task: (\S+)$", re.MULTILINE)
_FIELDS, _COMMITS = "\x1f", "\x1e"


async def layers_of(clone: Path, entry: pb.Entry) -> pb.Layers:
    """The accepted work task by task, the lowest first; commits that name no task belong to the layer below them.

    Accepted commits follow each other by their first parents; a task that changed nothing has no layer.
    """
    listed = await git(
        clone, "log", "--first-parent", "--reverse", f"--format=%H{_FIELDS}%T{_FIELDS}%B{_COMMITS}",
        f"{entry.base_commit}..{entry.commit}",
    )  # fmt: skip
    tree, task_id, changing = await text(clone, "rev-parse", f"{entry.base_commit}^{{tree}}"), "", []
    for part in listed.decode(errors="replace").split(_COMMITS)[:-1]:
        commit, own_tree, message = part.strip().split(_FIELDS, 2)
        named = _TASK.search(message)
        task_id = named[1] if named else task_id
        if own_tree != tree:
            changing.append((task_id, commit))
        tree = own_tree
    groups = [(task, list(group)[-1][1]) for task, group in groupby(changing, key=lambda one: one[0])]
    if not groups or len(groups) > MAX_LAYERS:
        raise Blocked(f"a stack has 1 to {MAX_LAYERS} layers, this work has {len(groups)}; deliver it without --stack")
    # commits behind the last change hold the same tree: the accepted commit itself is the highest layer's
    groups[-1] = (groups[-1][0], entry.commit)
    return pb.Layers(layers=[pb.Layer(task_id=task, commit=commit) for task, commit in groups])


def titled(layers: pb.Layers, story: Story) -> pb.Layers:
    """Layers with the names of their tasks."""
    names = {item.task_id: item.statement for item in story.delivery.deliverables}
    made = pb.Layers()
    made.CopyFrom(layers)
    for layer in made.layers:
        layer.title = " ".join(names.get(layer.task_id, layer.task_id).split())[:200]
    return made


def of_layer(story: Story) -> Story:
    """What a layer tells: its own task alone, unless a linked run has made its work."""
    entry = story.entry
    if not entry.HasField("stack") or entry.work_run_id != entry.run_id:
        return story
    task_id = entry.stack.layers[entry.stack.number - 1].task_id
    delivery = type(story.delivery)()
    delivery.CopyFrom(story.delivery)
    own = [item for item in delivery.deliverables if item.task_id == task_id]
    del delivery.deliverables[:]
    delivery.deliverables.extend(own)
    return replace(story, delivery=delivery)


def branch_of(entry: pb.Entry) -> str:
    """The branch that is pushed for an entry's pull request."""
    return f"{OWN_BRANCHES}{entry.run_id}" + (f"-{entry.stack.number}" if entry.HasField("stack") else "")


async def base_of(target: Target, entry: pb.Entry) -> str:
    """The commit that an entry goes onto: the layer below as it is proposed, or the tip of the target."""
    below = entry.stack.on_commit
    if not below:
        return await target.tip()
    if not await target.has(below) and not await target.fetched(below):
        raise Blocked(f"the layer below, {below[:12]} of {entry.stack.on_branch}, is not at the remote any more")
    return below
