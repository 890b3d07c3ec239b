"""Transitions of a run as lines of text."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pointsman.api.common.v1.common_pb2 import Transition

LINE_LENGTH = 160


@dataclass(frozen=True, slots=True)
class Line:
    """One line and its style."""

    text: str
    style: str = ""


def event_lines(transition: Transition) -> Iterator[Line]:
    """The lines for a transition; most transitions have none."""
    payload: dict[str, Any] = json.loads(transition.payload_json or "{}")
    if transition.event in _LINES_OF_EVENT:
        yield from _LINES_OF_EVENT[transition.event](payload)
    if transition.from_state != transition.to_state:
        reason = str(payload.get("reason") or "").strip().partition("\n")[0][:LINE_LENGTH]
        style = {"COMPLETE": "bold green", "FAILED": "bold red", "CANCELLED": "bold yellow"}.get(
            transition.to_state, ""
        )
        event = _EVENT_LABELS.get(transition.event, transition.event) if reason else transition.event
        yield Line(f"{transition.to_state:<16} {event}{f': {reason}' if reason else ''}", style)


_EVENT_LABELS = {"resource_busy": "waits", "claims_evidence_arrived": "attempts ended"}
"""Labels for events whose names would mislead beside their reason."""


def _planned(payload: dict[str, Any]) -> Iterator[Line]:
    for task in payload["plan"]["tasks"]:
        yield Line(f"  plan  {task['task_id']}: {task['name']}", "dim")


def _researched(payload: dict[str, Any]) -> Iterator[Line]:
    usable = "usable" if payload["usable"] else "not usable"
    yield Line(f"  research  {payload['slot']} by {payload['agent_id'] or 'nobody'}, {usable}", "dim")


def _assigned(payload: dict[str, Any]) -> Iterator[Line]:
    given = payload["assignment"]
    what = " ".join(part for part in (given["purpose"], given["task_id"], given["stage"], given["slot"]) if part)
    yield Line(f"  waits for an agent that can {str(given['capability']).lower()}: {what}", "dim")


def _retried(payload: dict[str, Any]) -> Iterator[Line]:
    yield Line(f"  {payload['agent_id']} failed (attempt {payload['attempt']}): {shortened(payload['error'])}", "red")


def _lost_lease(payload: dict[str, Any]) -> Iterator[Line]:
    text = f"  {payload['agent_id']} lost its lease (attempt {payload['attempt']}): no heartbeat came; offered again"
    yield Line(text, "yellow")


def _ended(payload: dict[str, Any]) -> Iterator[Line]:
    if payload["end"] == "DONE":
        yield Line(f"  {payload['agent_id']} handed in", "dim")
    elif payload["error"]:
        yield Line(f"  {payload['agent_id']} failed for the last time: {shortened(payload['error'])}", "red")


def _stage_failed(payload: dict[str, Any]) -> Iterator[Line]:
    who = f" by {payload['agent_id']}" if payload["agent_id"] else ""
    yield Line(f"  {payload['task_id']} {payload['stage']} failed{who}: {shortened(payload['reason'])}", "red")


def _worked(payload: dict[str, Any]) -> Iterator[Line]:
    made = payload["work"]
    files = ", ".join(made["changed_files"]) or "no file"
    claims = ", ".join(claim["claim_id"] for claim in made["claims"]) or "nothing"
    yield Line(f"  work  {payload['task_id']} changed {files}; claims {claims}", "cyan")


def _verified(payload: dict[str, Any]) -> Iterator[Line]:
    report = json.loads(payload["document"])
    for task in report.get("tasks", ()):
        for claim in task.get("claims", ()):
            status = claim["status"].removeprefix("CLAIM_STATUS_").lower()
            detail = f": {shortened(claim['detail'])}" if claim.get("detail") else ""
            yield Line(f"  verdict  {claim['claimId']} {status}{detail}", "green" if status == "supported" else "red")
        for criterion in task.get("criteria", ()):
            passed = criterion.get("passed", False)
            text = f"  verdict  {criterion['criterionId']} {'passed' if passed else 'failed'}"
            yield Line(text, "green" if passed else "red")
        if task.get("conflicts"):
            yield Line(f"  conflict in {', '.join(task['conflicts'])}", "red")


def _judged(payload: dict[str, Any]) -> Iterator[Line]:
    if payload["accepted"] is None:
        return
    word = "accepted" if payload["accepted"] else "rejected"
    reason = f": {shortened(payload['reason'])}" if payload["reason"] else ""
    style = "bold green" if payload["accepted"] else "bold red"
    yield Line(f"  {payload['task_id']} {word} by the {payload['judge']}{reason}", style)


def _risks(payload: dict[str, Any]) -> Iterator[Line]:
    for risk in payload["risks"]:
        yield Line(f"  risk  {risk['statement']}", "yellow")


def _asked(payload: dict[str, Any]) -> Iterator[Line]:
    yield Line(f"  question  {payload['question']['text']}", "bold yellow")


def shortened(text: str) -> str:
    """The first and the last line of a text, each cut to a maximum length."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip(" -=")]
    shown = lines if len(lines) <= 2 else [lines[0], f"… {lines[-1]}"]
    return " ".join(line[:LINE_LENGTH] for line in shown)


_LINES_OF_EVENT: Mapping[str, Callable[[dict[str, Any]], Iterator[Line]]] = {
    "planned": _planned,
    "researched": _researched,
    "assigned": _assigned,
    "assignment_retried": _retried,
    "assignment_ended": _ended,
    "lease_lost": _lost_lease,
    "stage_failed": _stage_failed,
    "work_handed_in": _worked,
    "wave_verified": _verified,
    "task_judged": _judged,
    "risks_noted": _risks,
    "asked": _asked,
}
