"""Makes a dictionary for packed texts from stores, the most usual first: `python -m tests.bench.dictionary DATA… > FILE`.

A dictionary that stores were written with never changes: read what is printed (names of machines and folders do not
belong into it), and write it into a file with the next number.
"""

import re
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from pointsman.services.chassis.storage.packing import unpack

LENGTH = 32_000
"""As far back as the packing looks."""
TEXTS = (("journal", "payload"), ("entities", "body"), ("idempotency", "answer"), ("assignments", "body"),
         ("documents", "body"), ("stages", "body"), ("shapes", "body"), ("reports", "body"), ("tracks", "body"))  # fmt: skip
ONCE = re.compile(r"[0-9a-f]{12,}|[0-9a-z]{20,}|[0-9]{4,}")
"""Ids and times, which do not come again."""
ROWS = 2000
NEW_SHARE, NEW_BYTES = 0.15, 12
"""What a text adds is kept if it needs more than this beside what is kept already."""


def main() -> None:
    """Print a dictionary of what the stores in the given folders have in common; the end of it is the cheapest to name."""
    kept = b""
    for folder in map(Path, sys.argv[1:]):
        for plain in sorted(set(_texts(folder)), key=len, reverse=True):
            stream = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, kept)
            if len(stream.compress(plain) + stream.flush()) > NEW_SHARE * len(plain) + NEW_BYTES:
                kept = plain + kept
    sys.stdout.buffer.write(kept[-LENGTH:])


def _texts(folder: Path) -> Iterator[bytes]:
    for file in sorted(folder.glob("*.db")):
        with closing(sqlite3.connect(file)) as store:
            tables = {name for (name,) in store.execute("SELECT name FROM sqlite_master")}
            for table, column in TEXTS:
                if table in tables:
                    rows = store.execute(f"SELECT {column} FROM {table} LIMIT {ROWS}")
                    yield from (ONCE.sub("", unpack(value)).encode() for (value,) in rows)


if __name__ == "__main__":
    main()
