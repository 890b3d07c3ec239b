#!/bin/sh
# A backup into an empty database, or into an empty POINTSMAN_DATA, while no service runs:
#   POINTSMAN_DATABASE_URL=postgresql://… deploy/restore.sh FILE
set -eu
source=$1
if [ -n "${POINTSMAN_DATABASE_URL:-}" ]; then
    . "$(dirname "$0")/connection.sh"
    pg_restore --exit-on-error --no-owner --single-transaction --dbname=service=pointsman "$source"
    exit
fi
mkdir -p "${POINTSMAN_DATA:?}"
for store in orchestrator pipeline workflow router; do
    if [ -e "$POINTSMAN_DATA/$store.db" ]; then
        echo "$POINTSMAN_DATA/$store.db is there already" >&2
        exit 1
    fi
    cp "$source/$store.db" "$POINTSMAN_DATA/$store.db"
done
