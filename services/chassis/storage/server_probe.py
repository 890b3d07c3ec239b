"""What a PostgreSQL server can do of what the stores use, found by trying each."""

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

REQUIRED = {
    "arrays": "SELECT 1 WHERE 1 = ANY(ARRAY[1, 2])",
    "json_to_recordset": "SELECT r.a FROM json_to_recordset('[{\"a\": 1}]') AS r(a bigint)",
    "json_array_elements": "SELECT value ->> 0 FROM json_array_elements('[[1]]') AS value",
    "LATERAL": "SELECT 1 FROM (SELECT 1 AS a) AS x CROSS JOIN LATERAL (SELECT x.a) AS y",
    "FOR UPDATE": "SELECT nspname FROM (SELECT 'a' AS nspname) AS x FOR UPDATE",
    "substr and strpos": "SELECT substr('abc', 1, 2), strpos('abc', 'b')",
}
OPTIONAL = {
    "LISTEN": "LISTEN pointsman_probe",
    "advisory locks": "SELECT pg_try_advisory_xact_lock(1)",
    "SKIP LOCKED": "SELECT a FROM (SELECT 1 AS a) AS x FOR UPDATE SKIP LOCKED",
    "pg_stat_activity": "SELECT application_name FROM pg_stat_activity LIMIT 1",
}
"""What POINTSMAN_DATABASE_FEATURES=portable does without."""


def version_of(connection: Connection) -> str:
    """What the server says that it is, in a few words."""
    said: str = connection.execute(text("SELECT version()")).scalar_one()
    return " ".join(said.split()[:2]).rstrip(",")


def missing(connection: Connection, statements: dict[str, str]) -> list[str]:
    """The names of the statements that the server refuses."""
    return [name for name, statement in statements.items() if not _accepts(connection, statement)]


def _accepts(connection: Connection, statement: str) -> bool:
    try:
        with connection.begin_nested():
            connection.execute(text(statement))
    except DBAPIError:
        return False
    return True
