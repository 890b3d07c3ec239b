"""Stores as they were written before texts were packed: every value as text."""

import sqlite3
from contextlib import closing
from pathlib import Path

from pointsman.services.chassis.storage.packing import unpack, unpack_digest, unpack_traceparent

UNPACKERS = {
    **dict.fromkeys(("payload", "body", "answer", "tail"), unpack),
    **dict.fromkeys(("digest", "fingerprint"), unpack_digest),
    "traceparent": unpack_traceparent,
}


def write_as_text(file: Path) -> int:
    """Write every packed value of a SQLite store as the text that it stands for; how many there were."""
    written = 0
    with closing(sqlite3.connect(file)) as store, store:
        tables = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for number, (column, unpacker) in enumerate(UNPACKERS.items()):
            store.create_function(f"text_{number}", 1, unpacker)
            for table in tables:
                if column in [row[1] for row in store.execute(f"PRAGMA table_info({table})")]:
                    change = f"UPDATE {table} SET {column} = text_{number}({column}) WHERE typeof({column}) = 'blob'"
                    written += store.execute(change).rowcount
    return written
