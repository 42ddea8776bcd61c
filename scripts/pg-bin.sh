#!/usr/bin/env bash
# pg-bin.sh MAJOR: prints the folder with `postgres`, `initdb` and `pg_ctl` of that major version; 18's has `pg_dump`,
# `psql` and `pgbench` as well. Fails, saying what to run, when it is not installed. PGVEIL_PG_CACHE names another cache.
#
# pg-bin.sh --cache: prints the folder that scripts/setup-postgres.sh installs into.
#
# The cache lies outside the checkout, so that a second clone finds it filled, and where another account can read it:
# PostgreSQL refuses to run as root, and root's home is closed to the account that runs it instead.
set -euo pipefail

shared=/var/cache/pgveil/postgres
if [[ -n ${PGVEIL_PG_CACHE:-} ]]; then
  caches=("$PGVEIL_PG_CACHE")
elif ((EUID == 0)); then
  caches=("$shared")
else
  caches=("${XDG_CACHE_HOME:-$HOME/.cache}/pgveil/postgres" "$shared")
fi

case ${1:-} in
  --cache)
    echo "${caches[0]}"
    exit
    ;;
  1[5-9]) ;;
  *)
    echo "usage: pg-bin.sh MAJOR | --cache" >&2
    exit 2
    ;;
esac

candidates=("${caches[@]/%//$1/bin}")
# 15 is the distribution's own where it has one; of the others, the pinned build goes before an installed one.
if [[ $1 == 15 ]]; then
  candidates=(/usr/lib/postgresql/15/bin "${candidates[@]}")
else
  candidates+=("/usr/lib/postgresql/$1/bin")
fi
for folder in "${candidates[@]}"; do
  if [[ -x $folder/postgres && -x $folder/initdb && -x $folder/pg_ctl ]]; then
    echo "$folder"
    exit
  fi
done
echo "PostgreSQL $1 is not installed: run scripts/setup-postgres.sh $1" >&2
exit 1
