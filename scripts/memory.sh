#!/usr/bin/env bash
# memory.sh: measures the memory of a release build of pgveil on two clusters of its own, and prints the figures.
#
#   snapshot   a masked snapshot of 1 GB
#   stream     one million row changes in small transactions: the first third of the time beside the last
#   huge       one transaction of ten million rows
#
# Measured, not judged: memory under load is no matter for a test of a few seconds. Takes about ten minutes.
# PGVEIL_MEMORY_SCALE=10 divides all sizes by ten. PGVEIL_TEST_PG chooses the version, 18 by default.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly VERSION=${PGVEIL_TEST_PG:-18} SCALE=${PGVEIL_MEMORY_SCALE:-1}
SERVER_BIN=$("$REPO/scripts/pg-bin.sh" "$VERSION")
CLIENT_BIN=$("$REPO/scripts/pg-bin.sh" 18)
readonly SERVER_BIN CLIENT_BIN
PGVEIL=${PGVEIL_BIN:-}
HOME_FOLDER=$(mktemp -d "${TMPDIR:-/tmp}/pgveil-memory.XXXXXX")
readonly HOME_FOLDER

# as_server COMMAND...: PostgreSQL refuses to run as root.
as_server() {
  if ((EUID == 0)); then
    (cd / && setpriv --reuid=postgres --regid=postgres --clear-groups -- "$@")
  else
    "$@"
  fi
}

# cluster NAME PORT
cluster() {
  local data=$HOME_FOLDER/$1
  as_server "$SERVER_BIN/initdb" -D "$data" --no-sync --no-instructions --encoding=UTF8 --locale=C --auth=trust -U postgres
  as_server tee -a "$data/postgresql.conf" >/dev/null <<CONF
port = $2
listen_addresses = '127.0.0.1'
unix_socket_directories = '$HOME_FOLDER'
wal_level = logical
fsync = off
full_page_writes = off
shared_buffers = 128MB
max_wal_size = 4GB
CONF
  as_server "$SERVER_BIN/pg_ctl" -D "$data" -l "$data/log" -w start
}

clean_up() {
  for name in source target; do
    as_server "$SERVER_BIN/pg_ctl" -D "$HOME_FOLDER/$name" -m immediate stop >/dev/null 2>&1 || true
  done
  rm -rf "$HOME_FOLDER"
}
trap clean_up EXIT

sql() { "$CLIENT_BIN/psql" -X -q -At -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$1" -U postgres -d postgres -c "$2"; }

# measure LABEL COMMAND...: runs pgveil, watching it five times a second: its largest resident size, and the means of the
# first and of the last third of its time, in MiB.
measure() {
  local label=$1 samples=$HOME_FOLDER/samples started=$SECONDS status=0 pid
  shift
  : >"$samples"
  "$PGVEIL" --config "$HOME_FOLDER/job.yaml" "$@" >"$HOME_FOLDER/output" 2>&1 &
  pid=$!
  # The kernel keeps the largest size itself; the last look at it is at most a fifth of a second old.
  while awk '/VmHWM/ { peak = $2 } /VmRSS/ { now = $2 } END { if (now == "") exit 1; print peak, now }' "/proc/$pid/status" >>"$samples" 2>/dev/null; do
    sleep 0.2
  done
  wait "$pid" || status=$?
  if ((status != 0)); then
    tail -n 20 "$HOME_FOLDER/output" >&2
    die "$label: pgveil ended with exit code $status"
  fi
  awk -v label="$label" -v seconds="$((SECONDS - started))" '
    { peak = $1 > peak ? $1 : peak; size[NR] = $2 }
    END {
      third = int(NR / 3); if (third < 1) third = 1
      for (n = 1; n <= third; n++) { first += size[n]; last += size[NR - third + n] }
      printf "  %-42s peak %4.0f MiB   first third %4.0f   last third %4.0f   %4d s\n", label, peak / 1024, first / third / 1024, last / third / 1024, seconds
    }' "$samples"
}

prepare() {
  chmod 755 "$HOME_FOLDER"
  ((EUID == 0)) && chown postgres: "$HOME_FOLDER"
  cluster source "$SOURCE_PORT"
  cluster target "$TARGET_PORT"
  local schema="create table person (id int8 primary key, email text, name text, address text, note text)"
  sql "$SOURCE_PORT" "$schema; create publication memory for table person"
  sql "$TARGET_PORT" "$schema"
  cat >"$HOME_FOLDER/job.yaml" <<YAML
job: { id: memory }
source: { url_env: PGVEIL_SOURCE_URL, publication: memory, slot: memory }
target: { url_env: PGVEIL_TARGET_URL }
tables: [public.person]
policy: policy.yaml
schema: { mode: existing }
YAML
  cat >"$HOME_FOLDER/policy.yaml" <<'YAML'
version: 1
guests: { standard: { builtin: standard } }
keys: { people: { env: PGVEIL_KEY_PEOPLE } }
tables:
  public.person:
    columns:
      id: pass
      email: { mask: standard/email, key: people }
      name: { mask: standard/name, key: people }
      address: { mask: standard/hash, key: people }
      note: pass
YAML
}

# rows FIRST LAST: about 270 bytes each as text.
rows() {
  echo "insert into person select i, 'person' || i || '@example.com', 'First Last ' || i, i || ' Long Street, Some Town', repeat(md5(i::text), 6) from generate_series($1::int8, $2::int8) i"
}

# Three thousand and a third rounds of a hundred inserts, updates and deletes each, every round three transactions.
changes() {
  cat <<SQL
do \$\$ begin
  for round in 1 .. $((3334 / SCALE)) loop
    insert into person select 1000000000 + round * 100 + i, 'c' || i || '@example.com', 'name', 'address', 'note' from generate_series(1, 100) i; commit;
    update person set email = 'u' || id || '@example.com' where id between 1000000000 + round * 100 + 1 and 1000000000 + round * 100 + 100; commit;
    delete from person where id between 1000000000 + round * 100 + 1 and 1000000000 + round * 100 + 100; commit;
  end loop;
end \$\$
SQL
}

compare() {
  local counted="select count(*) || ' ' || sum(id) from person"
  [[ $(sql "$SOURCE_PORT" "$counted") == "$(sql "$TARGET_PORT" "$counted")" ]] || die "$1: source and target differ"
}

readonly SOURCE_PORT=${PGVEIL_MEMORY_PORT:-54871}
readonly TARGET_PORT=$((SOURCE_PORT + 1))
export PGVEIL_SOURCE_URL=postgresql://postgres@127.0.0.1:$SOURCE_PORT/postgres PGVEIL_TARGET_URL=postgresql://postgres@127.0.0.1:$TARGET_PORT/postgres
export PGVEIL_KEY_PEOPLE=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f

if [[ -z $PGVEIL ]]; then
  step "building pgveil (release)" cargo build --release --manifest-path "$REPO/Cargo.toml" -p pgveil
  PGVEIL=${CARGO_TARGET_DIR:-$REPO/target}/release/pgveil
fi
step "two clusters of PostgreSQL $VERSION" prepare
step "rows for the snapshot" sql "$SOURCE_PORT" "$(rows 1 $((4000000 / SCALE)))"
say "the text of the rows: $(sql "$SOURCE_PORT" "select pg_size_pretty(sum(length(p::text))) from person p")"
measure "snapshot" bootstrap --once
compare snapshot
step "a million row changes" sql "$SOURCE_PORT" "$(changes)"
measure "stream of a million row changes" run --once
compare stream
step "ten million rows in one transaction" sql "$SOURCE_PORT" "$(rows 2000000001 $((2000000000 + 10000000 / SCALE)) | sed "s/repeat(md5(i::text), 6)/'short'/")"
measure "one transaction of ten million rows" run --once
compare "huge transaction"
