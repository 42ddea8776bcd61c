# Two throwaway servers. Sourced by demo.sh, stop.sh and ../bench.sh.
# shellcheck shell=bash

# Text output must not depend on the servers' defaults: both ends are compared as text.
export PGOPTIONS="-c DateStyle=ISO -c TimeZone=UTC -c IntervalStyle=postgres -c extra_float_digits=3"
unset PGHOST PGPORT PGUSER PGDATABASE PGPASSWORD PGSERVICE PGSSLMODE

# as_server COMMAND...: as an account that PostgreSQL accepts; it refuses root.
as_server() {
  if ((EUID != 0)); then
    "$@"
  else
    (cd / && setpriv --reuid="$(server_account)" --regid="$(id -g "$(server_account)")" --clear-groups "$@")
  fi
}

server_account() { if id postgres >/dev/null 2>&1; then echo postgres; else echo nobody; fi; }

# make_workplace NAME: sets WORK to an empty folder target/NAME where the servers' account can work; it lies beside the
# temporary files, linked from there, where that account cannot enter the checkout (as in root's home).
make_workplace() {
  local side
  WORK=$REPO/target/$1
  [[ ! -e $WORK && ! -L $WORK ]] || "$REPO/scripts/demo/stop.sh" "$1"
  mkdir -p "$WORK"
  if ! as_server test -x "$WORK"; then
    rmdir "$WORK"
    WORK=$(mktemp -d "${TMPDIR:-/tmp}/pgveil-$1.XXXXXX")
    chmod 755 "$WORK"
    ln -sfn "$WORK" "$REPO/target/$1"
  fi
  for side in source target; do
    mkdir "$WORK/$side"
    if ((EUID == 0)); then chown "$(server_account)" "$WORK/$side"; fi
  done
}

# free_port: one that nobody listens on now.
free_port() {
  local port attempt
  for ((attempt = 0; attempt < 100; attempt++)); do
    port=$((20000 + RANDOM % 12000))
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || {
      echo "$port"
      return
    }
  done
  die "no free port between 20000 and 32000"
}

# start_server SIDE MAJOR: makes the cluster if need be, starts it, and waits until it answers.
start_server() {
  local programs home=$WORK/$1 fresh=
  programs=$("$REPO/scripts/pg-bin.sh" "$2")
  if [[ ! -e $home/data ]]; then
    fresh=yes
    as_server "$programs/initdb" -D "$home/data" --username=postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 \
      --no-sync --no-instructions
    free_port >"$home/port"
    as_server tee -a "$home/data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
port = $(cat "$home/port")
unix_socket_directories = ''
wal_level = logical
CONF
  fi
  as_server "$programs/pg_ctl" start --wait --timeout=60 --silent -D "$home/data" --log="$home/server.log"
  if [[ -n $fresh ]]; then
    "$CLIENTS/psql" -Xq -d "postgresql://postgres@127.0.0.1:$(cat "$home/port")/postgres" -c "CREATE DATABASE shop"
  fi
}

# stop_server SIDE MODE: stops it if it runs.
stop_server() {
  local data=${WORK:?}/$1/data major
  [[ -s $data/postmaster.pid ]] || return 0
  major=$(cat "$data/PG_VERSION")
  as_server "$("$REPO/scripts/pg-bin.sh" "$major")/pg_ctl" stop --silent --wait -D "$data" --mode="$2" || true
}

url() { echo "postgresql://postgres@127.0.0.1:$(cat "$WORK/$1/port")/shop"; }

# ask SIDE SQL: the bare answer. sql_file SIDE FILE: runs a file, stopping at the first error.
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$(url "$1")" -c "$2"; }
sql_file() { psql -Xq -v ON_ERROR_STOP=1 -d "$(url "$1")" -f "$2"; }

# One transaction: the shop is there whole, or not at all.
load_shop() { psql -Xq -v ON_ERROR_STOP=1 --single-transaction -d "$(url source)" -f "$DEMO/schema.sql"; }
