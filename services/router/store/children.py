"""Child rows of entities: loads the tracks and errors that commands need, saves changed ones, and indexes decisions by time."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, select

from pointsman.services.chassis.core.clock import from_us, to_us
from pointsman.services.chassis.core.codec import from_json, to_json
from pointsman.services.chassis.engine.changes import AttachChildren, Change
from pointsman.services.chassis.storage.bulk import upsert_rows
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.dialect import PreparedStatement, any_of, bind_list
from pointsman.services.router.domain.decision_record import DecisionRecord
from pointsman.services.router.domain.enums import Debate
from pointsman.services.router.domain.outcomes import FORGET_AFTER, OutcomeEvent, Outcomes, ReportOutcome, Tally, Track
from pointsman.services.router.store.tables import RouterTables

_CLEARING = (OutcomeEvent.TASK_SUCCEEDED, OutcomeEvent.STARTED_FRESH)


class DecisionChildren:
    """One index row for each decision, for queries by time."""

    body_type: type = DecisionRecord

    def __init__(self, database: Database, tables: RouterTables) -> None:
        self._save = upsert_rows(database, tables.decisions, ("entity_id",))

    def body(self, state: DecisionRecord) -> DecisionRecord:
        """The whole state is the body."""
        return state

    def state(self, body: Any) -> DecisionRecord:
        """The body is the whole state."""
        record: DecisionRecord = body
        return record

    def load(self, connection: Connection, commands: Mapping[str, Sequence[Any]]) -> None:
        """Loads nothing: commands need only the body."""

    def save(self, connection: Connection, changes: Sequence[Change[DecisionRecord]]) -> None:
        """Writes the index rows of changed decisions."""
        self._save.run(connection, [_index_row(change) for change in changes])


def _index_row(change: Change[DecisionRecord]) -> dict[str, Any]:
    record = change.state
    assert record is not None
    decision = record.made
    return {
        "entity_id": change.entity_id, "project": change.project, "at_us": to_us(record.decided_at),
        "run_id": decision.run_id, "task_id": decision.task_id, "mode": str(decision.mode), "confidence": str(decision.confidence),
        "fast_path": int(decision.fast_path), "debate": int(decision.debate is Debate.PLANNING),
        "overridden": int(decision.overridden), "clarifications": record.clarifications,
    }  # fmt: skip


class OutcomeChildren:
    """The tracks of a project's tasks, and their errors of the last 24 hours."""

    body_type: type = Tally

    def __init__(self, database: Database, tables: RouterTables) -> None:
        tracks, errors = tables.tracks, tables.errors
        self._database = database
        found = and_(any_of(database, tracks.c.entity_id, "entities"), any_of(database, tracks.c.task_id, "tasks"))
        self._find_tracks = PreparedStatement(
            database, select(tracks.c.entity_id, tracks.c.task_id, tracks.c.body).where(found)
        )
        alike = and_(any_of(database, errors.c.entity_id, "entities"), any_of(database, errors.c.fingerprint, "prints"))
        columns = (errors.c.entity_id, errors.c.fingerprint, errors.c.task_id, errors.c.at_us)
        self._find_errors = PreparedStatement(database, select(*columns).where(alike))
        self._save_tracks = upsert_rows(database, tracks, ("entity_id", "task_id"))
        self._save_errors = upsert_rows(database, errors, ("entity_id", "fingerprint", "task_id"))
        cleared = and_(errors.c.entity_id == bindparam("entity"), any_of(database, errors.c.task_id, "tasks"))
        self._clear = PreparedStatement(database, delete(errors).where(cleared))
        old = and_(errors.c.entity_id == bindparam("entity"), errors.c.at_us < bindparam("oldest"))
        self._forget = PreparedStatement(database, delete(errors).where(old))

    def body(self, state: Outcomes) -> Tally:
        """The tally; tracks and errors are child rows."""
        return state.tally

    def state(self, body: Any) -> Outcomes:
        """A state with its tally, before tracks and errors are attached."""
        return Outcomes(body)

    def load(self, connection: Connection, commands: Mapping[str, Sequence[Any]]) -> AttachChildren[Outcomes]:
        """Loads the tracks of the reported tasks, and the tasks that failed with the same errors."""
        wanted = [command for group in commands.values() for command in group]
        entities = bind_list(self._database, sorted(commands))
        tasks = bind_list(self._database, sorted({command.task_id for command in wanted}))
        tracks = self._find_tracks.start(connection, {"entities": entities, "tasks": tasks})
        prints = sorted({command.fingerprint for command in wanted if isinstance(command, ReportOutcome)} - {""})
        parameters = {"entities": entities, "prints": bind_list(self._database, prints)}
        errors = self._find_errors.start(connection, parameters) if prints else None

        def attach(states: Mapping[str, Outcomes]) -> None:
            for entity_id, task_id, body in tracks.fetchall():
                states[entity_id].tracks[task_id] = from_json(body, Track)
            for entity_id, fingerprint, task_id, at_us in errors.fetchall() if errors is not None else ():
                states[entity_id].errors.setdefault(fingerprint, {})[task_id] = from_us(at_us)

        return attach

    def save(self, connection: Connection, changes: Sequence[Change[Outcomes]]) -> None:
        """Writes changed tracks and errors, and deletes errors of succeeded tasks and those older than 24 hours."""
        tracks: list[dict[str, Any]] = []
        errors: list[dict[str, Any]] = []
        for change in changes:
            outcomes = change.state
            assert outcomes is not None
            touched = {event.data.task_id for event in change.events}
            tracks += [
                {"entity_id": change.entity_id, "task_id": task, "body": to_json(outcomes.tracks[task])}
                for task in touched
            ]
            errors += _errors_of(change, outcomes, touched)
            self._drop(connection, change)
        if tracks:
            self._save_tracks.run(connection, tracks)
        if errors:
            self._save_errors.run(connection, errors)

    def _drop(self, connection: Connection, change: Change[Outcomes]) -> None:
        cleared = sorted({event.data.task_id for event in change.events if event.name in _CLEARING})
        if cleared:
            self._clear.start(connection, {"entity": change.entity_id, "tasks": bind_list(self._database, cleared)})
        self._forget.start(connection, {"entity": change.entity_id, "oldest": to_us(change.at - FORGET_AFTER)})


def _errors_of(change: Change[Outcomes], outcomes: Outcomes, touched: set[str]) -> list[dict[str, Any]]:
    return [
        {"entity_id": change.entity_id, "fingerprint": fingerprint, "task_id": task, "at_us": to_us(at)}
        for fingerprint, failed in outcomes.errors.items()
        for task, at in failed.items()
        if task in touched
    ]
