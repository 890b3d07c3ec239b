"""What a store uses of its database server beyond portable SQL."""

from typing import NamedTuple

from sqlalchemy.engine import URL

from pointsman.services.chassis.core.config import FEATURES_PARAMETER


class Features(NamedTuple):
    """The features of a database server that a store relies on; what it does without each of them is said here."""

    listen: bool
    """LISTEN/NOTIFY, and pg_stat_activity with every replica in it; else replicas poll the journal's head."""
    skip_locked: bool
    """FOR UPDATE SKIP LOCKED; else two replicas that claim the same row conflict, and the later one tries again."""
    advisory_locks: bool
    """pg_advisory_xact_lock; else a row is updated first, and the later transaction tries again."""
    serializable: bool
    """Whether transactions are SERIALIZABLE; else READ COMMITTED with the locks above, or the lock of a SQLite file."""


POSTGRESQL = Features(listen=True, skip_locked=True, advisory_locks=True, serializable=False)
PORTABLE = Features(listen=False, skip_locked=False, advisory_locks=False, serializable=True)
SQLITE = Features(listen=False, skip_locked=False, advisory_locks=False, serializable=False)


def features_of(url: URL) -> Features:
    """What a store uses of the database at this address."""
    if url.get_backend_name() != "postgresql":
        return SQLITE
    return PORTABLE if url.query.get(FEATURES_PARAMETER) == "portable" else POSTGRESQL
