#!/bin/bash
# Runs once, when PostgreSQL creates its data directory. The hub refuses superusers, so it gets a role for changes and a
# role that only reads. The superuser is left without a password: it logs in only from inside the container.
set -euo pipefail

psql --no-psqlrc --quiet --username postgres --set ON_ERROR_STOP=1 --set password="$POSTGRES_PASSWORD" <<'SQL'
CREATE ROLE octoprox LOGIN PASSWORD :'password';
CREATE ROLE octoprox_reader LOGIN PASSWORD :'password';
GRANT pg_read_all_data TO octoprox_reader;
CREATE DATABASE octoprox OWNER octoprox;
ALTER ROLE postgres PASSWORD NULL;
SQL
