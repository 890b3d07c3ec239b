"""Permissions that agents at work wait for: how events change them."""

import hashlib
from dataclasses import replace

from pointsman.services.orchestrator.domain.enums import PermissionState, Question, Reply
from pointsman.services.orchestrator.domain.permission_events import PermissionRequested
from pointsman.services.orchestrator.domain.run import Permission, Run


def permission_id(assignment_id: str, key: str) -> str:
    """The same request under the same assignment is the same permission, under every lease of it."""
    return f"p-{hashlib.sha256(f'{assignment_id}/{key}'.encode()).hexdigest()[:16]}"


def apply_requested(run: Run, data: PermissionRequested) -> Run:
    """One more permission that waits."""
    return run.change(permissions={**run.permissions, data.permission_id: Permission(data.assignment_id, data.text)})


def apply_answered(run: Run, reply: Reply) -> Run:
    """The permission that the question is about is answered."""
    question = run.question
    if question is None or question.kind is not Question.PERMISSION or question.subjects[0] not in run.permissions:
        return run
    state = PermissionState.ALLOWED if reply is Reply.ALLOW else PermissionState.DENIED
    answered = replace(run.permissions[question.subjects[0]], state=state)
    return run.change(permissions={**run.permissions, question.subjects[0]: answered})


def apply_assignment_ended(run: Run, assignment_id: str) -> Run:
    """Nobody waits for what was asked under an assignment that has ended, nor for the question about it."""
    if not run.permissions:
        return run
    left = {key: item for key, item in run.permissions.items() if item.assignment_id != assignment_id}
    question = run.question
    if question is not None and question.kind is Question.PERMISSION and question.subjects[0] not in left:
        question = None
    return run.change(permissions=left, question=question)
