#!/bin/sh
# Creates the role and database of the servers. The role is no superuser, so that row-level security applies to it.
set -eu
psql --username "$POSTGRES_USER" --set password="$DATABASE_PASSWORD" --set ON_ERROR_STOP=1 <<'SQL'
CREATE ROLE threadkeep LOGIN PASSWORD :'password' NOSUPERUSER NOBYPASSRLS;
CREATE DATABASE threadkeep OWNER threadkeep;
SQL
