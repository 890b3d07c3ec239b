"""Proves the promises of all four stores by reading them; it can run beside the services and never writes."""

import asyncio
import json
from dataclasses import asdict

from sqlalchemy import func, select

from pointsman.cli import EXIT_FAILED
from pointsman.cli.plane import CONTEXTS, build_one
from pointsman.services.chassis.audit import Auditor, Violation
from pointsman.services.chassis.config import StoreSettings, load
from pointsman.services.chassis.store import Store


def audit_stores(*, as_json: bool) -> int:
    """Audit every store and print what was found; the exit code."""
    findings = asyncio.run(_audit_all())
    broken = [(name, violation) for name, (_, violations) in findings.items() for violation in violations]
    if as_json:
        rows = {
            name: {"transitions": count, "violations": [asdict(violation) for violation in violations]}
            for name, (count, violations) in findings.items()
        }
        print(json.dumps(rows, indent=2))
        return EXIT_FAILED if broken else 0
    for name, violation in broken:
        print(f"BROKEN  {name} {violation.invariant} {violation.entity_id} seq {violation.seq}: {violation.detail}")
    for name, (count, violations) in findings.items():
        print(f"{name:<13} {count} transitions, {len(violations) or 'no'} violations")
    return EXIT_FAILED if broken else 0


async def _audit_all() -> dict[str, tuple[int, list[Violation]]]:
    stores = load(StoreSettings)
    findings: dict[str, tuple[int, list[Violation]]] = {}
    for name in CONTEXTS:
        if not stores.database_url and not (stores.directory / f"{name}.db").exists():
            continue
        service = build_one(name, stores, "127.0.0.1:1")
        assert service.store is not None
        findings[name] = _audit(service.store)
        if service.close is not None:
            await service.close()
        service.store.close()
    return findings


def _audit(store: Store) -> tuple[int, list[Violation]]:
    auditor, journal = Auditor(store), store.tables.journal
    return store.database.read_now(
        lambda connection: (
            connection.execute(select(func.count()).select_from(journal)).scalar_one(),
            list(auditor.violations(connection)),
        )
    )
