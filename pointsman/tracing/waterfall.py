"""A run's time as a tree of intervals, made from its journals, with its waits and its critical path."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.api.journal.v1.run_events_pb2 import RunEvent

BAR_LENGTH = 40
ENDED_BY = {
    "STAGE_DELEGATED": ("STAGE_COMPLETED", "STAGE_FAILED", "STAGE_RETRY", "STAGE_SKIPPED", "STAGE_ESCALATED"),
    "BARRIER_WAITING": ("BARRIER_RESOLVED", "BARRIER_TIMED_OUT"),
}
ENDED_IDS = frozenset({"question_id", "assignment_id", "call_id"})
ENTRY_WAITS = {"QUEUED": "queue", "PROPOSED": "forge", "WAITING": "agent", "ASKED": "person"}
"""What an entry waits for in a state; in the others it is proven and pushed."""
RETRIES = frozenset({"reject_or_retry", "assignment_retried", "STAGE_RETRY"})
"""Events that repeat work: a rejected wave, a failed attempt, a stage retry."""


@dataclass(slots=True)
class Interval:
    """A span of time with its label and its children."""

    label: str
    begin_ns: int
    end_ns: int
    ended_by: str = ""
    wait: str = ""
    """What the run waited for: person, agent, peer, barrier, queue, forge; empty where it did not wait."""
    retries: int = 0
    children: list["Interval"] = field(default_factory=list)

    @property
    def length_ns(self) -> int:
        """Its length."""
        return self.end_ns - self.begin_ns


def tree_of(run: Sequence[Transition], others: Mapping[str, Sequence[Transition]]) -> Interval:
    """A run as a tree: its states; inside them questions, assignments, peer calls and the work of other services."""
    begin_ns = min(rows[0].at.ToNanoseconds() for rows in (run, *others.values()) if rows)
    end_ns = max(rows[-1].at.ToNanoseconds() for rows in (run, *others.values()) if rows)
    whole = Interval(f"run {run[0].entity_id}", begin_ns, end_ns, ended_by=run[-1].to_state)
    whole.children = list(_stays(run, end_ns))
    for part in (*_waits(run, end_ns), *(_other(rows) for rows in others.values() if rows)):
        _place(whole, part)
    whole.retries = sum(row.event in RETRIES for rows in (run, *others.values()) for row in rows)
    return whole


def _stays(rows: Sequence[Transition], end_ns: int) -> Iterator[Interval]:
    moves = [row for row in rows if row.from_state != row.to_state]
    for entered, left in zip(moves, [*moves[1:], None], strict=True):
        begin_ns = entered.at.ToNanoseconds()
        if left is not None:
            yield Interval(entered.to_state, begin_ns, left.at.ToNanoseconds(), ended_by=left.event)
        elif begin_ns < end_ns:
            yield Interval(entered.to_state, begin_ns, end_ns)


def _waits(rows: Sequence[Transition], end_ns: int) -> Iterator[Interval]:
    """Questions, assignments and peer calls: each from its first event to the next event with its id."""
    open_ones: dict[str, Interval] = {}
    for row in rows:
        at_ns, begun, retried = row.at.ToNanoseconds(), _begins(row.run), row.run.assignment_retried.assignment_id
        if begun is not None:
            key, label, wait = begun
            open_ones[key] = Interval(label, at_ns, at_ns, wait=wait)
        elif retried in open_ones:
            open_ones[retried].retries += 1
        else:
            for key in _named(row.run) & open_ones.keys():
                yield _closed(open_ones.pop(key), at_ns, row.event)
    for left in open_ones.values():
        yield _closed(left, end_ns, "")


def _begins(event: RunEvent) -> tuple[str, str, str] | None:
    """The id, the label and the cause of a wait that begins."""
    if event.HasField("asked"):
        question = event.asked.question
        return question.question_id, f"question {question.kind}".strip(), "person"
    if event.HasField("assigned"):
        work = event.assigned.assignment
        where = " ".join(part for part in (work.purpose, work.task_id, work.stage, work.slot) if part)
        return work.assignment_id, f"assignment {where}", "agent"
    if event.HasField("peer_called"):
        return event.peer_called.call_id, f"call {event.peer_called.call}", "peer"
    return None


def _named(event: RunEvent) -> set[str]:
    """The ids of questions, assignments and calls that an event names."""
    return {value for _, said in event.ListFields() for field, value in said.ListFields() if field.name in ENDED_IDS}


def _other(rows: Sequence[Transition]) -> Interval:
    """Another entity: with the stages and barriers of a pipeline inside, or with the states of a queue's entry."""
    first, last = rows[0], rows[-1]
    ended_by = last.to_state if last.kind != "decision" else ""
    part = Interval(f"{first.kind} {first.entity_id}", first.at.ToNanoseconds(), last.at.ToNanoseconds(), ended_by)
    if first.kind == "entry":
        part.children = [replace(stay, wait=ENTRY_WAITS.get(stay.label, "")) for stay in _stays(rows, part.end_ns)]
        return part
    open_ones: dict[tuple[str, str], Interval] = {}
    for row in rows:
        data, at_ns = json.loads(row.payload_json or "{}"), row.at.ToNanoseconds()
        name = str(data.get("stage") or data.get("group") or "")
        for begins, ends in ENDED_BY.items():
            if row.event in ends and (begins, name) in open_ones:
                part.children.append(_closed(open_ones.pop((begins, name)), at_ns, row.event))
        if row.event == "STAGE_DELEGATED":
            open_ones[row.event, name] = Interval(f"stage {name}", at_ns, at_ns, wait="agent")
        elif row.event == "BARRIER_WAITING":
            group = str(data.get("group", ""))
            open_ones.setdefault((row.event, group), Interval(f"barrier {group}", at_ns, at_ns, wait="barrier"))
        part.retries += row.event in RETRIES
    part.children += [_closed(left, part.end_ns, "") for left in open_ones.values()]
    return part


def _closed(interval: Interval, end_ns: int, ended_by: str) -> Interval:
    interval.end_ns, interval.ended_by = end_ns, ended_by
    return interval


def _place(whole: Interval, part: Interval) -> None:
    """Adds an interval to the state in which it began, else to the run itself."""
    for stay in whole.children:
        if stay.begin_ns <= part.begin_ns < stay.end_ns and not stay.wait:
            stay.children.append(part)
            return
    whole.children.append(part)


def waits(whole: Interval) -> dict[str, int]:
    """Nanoseconds of waiting by cause; overlapping waits for one cause count once."""
    found: dict[str, list[tuple[int, int]]] = {}
    for interval in _all(whole):
        if interval.wait:
            found.setdefault(interval.wait, []).append((interval.begin_ns, interval.end_ns))
    return {cause: _covered(spans) for cause, spans in sorted(found.items())}


def _covered(spans: Iterable[tuple[int, int]]) -> int:
    total, reached = 0, 0
    for begin_ns, end_ns in sorted(spans):
        total += max(0, end_ns - max(begin_ns, reached))
        reached = max(reached, end_ns)
    return total


def critical_path(whole: Interval) -> list[tuple[Interval, int]]:
    """The intervals that determine the run's length, in order, each with its own share."""
    path: list[tuple[Interval, int]] = []
    left_ns, own_ns = whole.end_ns, 0
    for child in sorted(whole.children, key=lambda one: one.end_ns, reverse=True):
        if child.end_ns <= left_ns and child.length_ns > 0:
            own_ns += left_ns - child.end_ns
            path = [*critical_path(child), *path]
            left_ns = child.begin_ns
    own_ns += left_ns - whole.begin_ns
    return [(whole, own_ns), *path]


def _all(interval: Interval) -> Iterator[Interval]:
    yield interval
    for child in interval.children:
        yield from _all(child)


def draw(whole: Interval) -> list[str]:
    """The tree as lines: begin, length, label, a bar on the run's scale, and what ended it."""
    length_ns = max(whole.length_ns, 1)
    lines = []
    for depth, interval in _nested(whole, 0):
        begin_ns = interval.begin_ns - whole.begin_ns
        offset = min(BAR_LENGTH - 1, begin_ns * BAR_LENGTH // length_ns)
        width = max(1, min(BAR_LENGTH - offset, round(interval.length_ns * BAR_LENGTH / length_ns)))
        bar = " " * offset + ("░" if interval.wait else "█") * width
        label = "  " * depth + interval.label
        notes = [f"→ {interval.ended_by}"] if interval.ended_by else []
        if interval.retries:
            notes.append(f"{interval.retries} {'retry' if interval.retries == 1 else 'retries'}")
        times = f"{format_duration(begin_ns):>9} {format_duration(interval.length_ns):>9}"
        lines.append(f"{times}  {_shorten(label):<44}|{bar:<{BAR_LENGTH}}| {', '.join(notes)}".rstrip())
    return lines


def summary(whole: Interval) -> list[str]:
    """Waits, retries and critical path as lines."""
    length_ns = max(whole.length_ns, 1)
    waited = [
        f"{cause} {format_duration(spent)} ({spent * 100 // length_ns} %)" for cause, spent in waits(whole).items()
    ]
    longest = sorted(critical_path(whole), key=lambda item: item[1], reverse=True)[:5]
    path = [
        f"{one.label} {format_duration(spent)} ({spent * 100 // length_ns} %)" for one, spent in longest if spent > 0
    ]
    return [
        f"waits          {' · '.join(waited) or 'none'}",
        f"retries        {whole.retries}",
        f"critical path  {' · '.join(path)}",
    ]


def _nested(interval: Interval, depth: int) -> Iterator[tuple[int, Interval]]:
    yield depth, interval
    for child in sorted(interval.children, key=lambda one: one.begin_ns):
        yield from _nested(child, depth + 1)


def format_duration(nanoseconds: int) -> str:
    """A duration in seconds, minutes, hours or days."""
    seconds = nanoseconds / 1e9
    if seconds < 120:
        return f"{seconds:.3f} s"
    if seconds < 7200:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} d"


def _shorten(label: str) -> str:
    return label if len(label) <= 43 else f"{label[:42]}…"
