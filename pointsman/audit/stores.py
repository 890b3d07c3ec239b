"""Checks the invariants of all four stores; it can run beside the services and never writes."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, func, select

from pointsman.audit.agreement import Agreement, Traced
from pointsman.audit.entries import EntryProof
from pointsman.audit.pipelines import PipelineProof
from pointsman.audit.runs import RunProof
from pointsman.audit.schedules import prove_schedule
from pointsman.audit.workflows import WorkflowProof
from pointsman.services.all_in_one import CONTEXTS, build_one
from pointsman.services.chassis.core.config import StoreSettings
from pointsman.services.chassis.engine.audit import Auditor, Proof, Violation
from pointsman.services.chassis.runtime.service import Service
from pointsman.services.chassis.storage.store import Store

TOGETHER = "together"


@dataclass(slots=True)
class StoreFindings:
    """The result of auditing one store."""

    transitions: int = 0
    violations: list[Violation] = field(default_factory=list)


async def audit_stores(stores: StoreSettings, settle_seconds: float = 1.0) -> dict[str, StoreFindings]:
    """Every violation in every existing store, and between the stores when all exist.

    The stores are read one after the other, so differences that are only calls under way are gone at a second look.
    """
    services = {name: build_one(name, stores, "127.0.0.1:1") for name in CONTEXTS if _is_there(stores, name)}
    try:
        findings = _audit_all(services)
        if TOGETHER in findings and findings[TOGETHER].violations:
            await asyncio.sleep(settle_seconds)
            again = _audit_all(services)[TOGETHER].violations
            findings[TOGETHER].violations = [found for found in findings[TOGETHER].violations if found in again]
        return findings
    finally:
        for service in services.values():
            if service.close is not None:
                await service.close()
            if service.store is not None:
                service.store.close()


def _is_there(stores: StoreSettings, name: str) -> bool:
    return bool(stores.database_url) or (stores.directory / f"{name}.db").exists()


def _audit_all(services: Mapping[str, Service]) -> dict[str, StoreFindings]:
    proofs, agreement = _proofs(services)
    findings: dict[str, StoreFindings] = {}
    for name, service in services.items():
        assert service.store is not None
        findings[name] = _audit(service.store, proofs.get(name, {}))
        if agreement is not None:
            agreement.traced.extend(_traced(service.store))
    if agreement is not None:
        findings[TOGETHER] = StoreFindings(violations=list(agreement.violations()))
    return findings


def _proofs(services: Mapping[str, Service]) -> tuple[dict[str, dict[str, Proof]], Agreement | None]:
    """The proofs of each context, and the agreement between the stores if all exist."""
    proofs: dict[str, dict[str, Proof]] = {}
    stores = {name: service.store for name, service in services.items() if service.store is not None}
    if "pipeline" in stores:
        pipelines = PipelineProof(stores["pipeline"])
        proofs["pipeline"] = {"pipeline": pipelines}
    if "workflow" in stores:
        workflows = WorkflowProof(stores["workflow"])
        proofs["workflow"] = {"workflow": workflows}
    if "orchestrator" in stores:
        runs = RunProof(stores["orchestrator"])
        proofs["orchestrator"] = {"run": runs, "entry": EntryProof(), "schedule": prove_schedule}
    if stores.keys() < set(CONTEXTS):
        return proofs, None
    return proofs, Agreement(runs, workflows, pipelines, [])


def _audit(store: Store, proofs: Mapping[str, Proof]) -> StoreFindings:
    auditor, journal = Auditor(store, proofs), store.tables.journal
    return store.database.read_now(
        lambda connection: StoreFindings(
            connection.execute(select(func.count()).select_from(journal)).scalar_one(),
            list(auditor.violations(connection)),
        )
    )


def _traced(store: Store) -> list[Traced]:
    table = store.tables.entities
    wanted = select(table.c.entity_id, table.c.run_id, table.c.version, table.c.created_at_us, table.c.traceparent)

    def query(connection: Connection) -> list[Traced]:
        return [Traced(store.database.schema, *row) for row in connection.execute(wanted)]

    return store.database.read_now(query)
