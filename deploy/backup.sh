#!/bin/sh
# All four stores, as of one moment, while they serve:
#   POINTSMAN_DATABASE_URL=postgresql://… deploy/backup.sh FILE
# Without a URL, the SQLite files of POINTSMAN_DATA into a directory FILE: the orchestrator first, so that what it
# believes of the others is never newer than what they know.
set -eu
target=$1
if [ -n "${POINTSMAN_DATABASE_URL:-}" ]; then
    . "$(dirname "$0")/connection.sh"
    pg_dump --format=custom --no-owner --file="$target" service=pointsman
    exit
fi
mkdir -p "$target"
for store in orchestrator pipeline workflow router; do
    sqlite3 "${POINTSMAN_DATA:?}/$store.db" "VACUUM INTO '$target/$store.db'"
done
