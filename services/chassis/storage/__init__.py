"""The database of one context: engines, tables, migrations, the writing thread, and notifications between replicas.

Owns: `database` (SQLite file or PostgreSQL schema), `tables`, `migrate` with `migrations/`, `dialect` (where the two differ),
`packing` (texts in fewer bytes on SQLite), `bulk` (many rows, one statement), `statements` (what a batch loads and
writes), `writer` (group commit), `store` (all of it for one context), `notifications` (in the process, and by
LISTEN/NOTIFY), `file_lock` (one owner of a data directory).
Invariant: one writing connection per store and process; a failed group commit is retried item by item.
Never: decides anything; protobuf and gRPC are not imported here.
"""
