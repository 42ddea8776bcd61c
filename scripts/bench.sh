#!/usr/bin/env bash
# Measures pgveil in release on this machine: rows a second, and the peak of its resident memory, of
#
#   a masked snapshot of 1 GB, a stream of a million changed rows, and one transaction of ten million rows.
#
#   scripts/bench.sh [--quick]      --quick: a tenth of the rows
#
# Four text columns a row are masked. Both servers run on the same machine and take their share of it, with the durable
# settings of a fresh cluster. The results are printed as a table, for docs/benchmarks.md.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$REPO/scripts/demo/servers.sh"

SCALE=1
[[ ${1:-} != --quick ]] || SCALE=10
SNAPSHOT_ROWS=$((4000000 / SCALE)) # of 250 bytes: 1 GB
CHANGED_ROWS=$((1000000 / SCALE))
TRANSACTION_ROWS=$((10000000 / SCALE))
MAJOR=${BENCH_PG:-18}

"$REPO/scripts/setup-postgres.sh" 18 "$MAJOR"
[[ -n ${PGVEIL_BIN:-} ]] || "$REPO/scripts/setup-wasm.sh"
CLIENTS=$("$REPO/scripts/pg-bin.sh" 18)
export PATH=$CLIENTS:$PATH
if [[ -z ${PGVEIL_BIN:-} ]]; then
  (cd "$REPO" && step "cargo build --release" cargo build --quiet --release --locked --package pgveil)
  PGVEIL_BIN=${CARGO_TARGET_DIR:-$REPO/target}/release/pgveil
fi

finish() {
  local status=$?
  trap - EXIT INT TERM
  [[ -z ${JOB:-} ]] || kill -TERM "$JOB" 2>/dev/null || true
  ((status == 0)) || cp "$WORK/pgveil.log" "$REPO/target/bench-failed.log" 2>/dev/null || true
  "$REPO/scripts/demo/stop.sh" bench
  exit "$status"
}

# pgveil COMMAND...: starts it in the background, as JOB.
pgveil() {
  setsid "$PGVEIL_BIN" --config "$WORK/job.yaml" "$@" >>"$WORK/pgveil.log" 2>&1 </dev/null &
  JOB=$!
}

# memory FIELD: VmHWM (the peak so far) or VmRSS (now) of JOB, in MiB; nothing once it has ended.
memory() { awk -v field="$1:" '$1 == field { printf "%.0f", $2 / 1024 }' "/proc/$JOB/status" 2>/dev/null || true; }

# ended: waits for JOB and leaves its peak in PEAK.
ended() {
  local peak status=0
  PEAK=0
  while kill -0 "$JOB" 2>/dev/null; do
    peak=$(memory VmHWM)
    [[ -z $peak ]] || PEAK=$peak
    sleep 0.05
  done
  wait "$JOB" || status=$?
  JOB=
  ((status == 0)) || die "pgveil ended with exit code $status: see target/bench-failed.log"
}

# caught_up: waits until the target has flushed all that the source has committed now; samples memory meanwhile.
caught_up() {
  local position
  position=$(ask source "SELECT pg_current_wal_flush_lsn()")
  until [[ $(ask source "SELECT confirmed_flush_lsn >= '$position' FROM pg_replication_slots WHERE slot_name = 'bench'") == t ]]; do
    kill -0 "$JOB" 2>/dev/null || die "pgveil has ended: see target/bench-failed.log"
    SAMPLES+=("$(memory VmRSS)")
    sleep 0.2
  done
}

# report WHAT ROWS STARTED PEAK: a line of the table. STARTED is EPOCHREALTIME without its point: microseconds.
report() {
  local took=$((${EPOCHREALTIME/./} - $3))
  printf '| %-38s | %10d | %8.1f | %9d | %8s |\n' "$1" "$2" "$(awk "BEGIN { print $took / 1e6 }")" $(($2 * 1000000 / took)) "$4"
}

make_workplace bench
trap finish EXIT
trap 'exit 130' INT TERM
for side in source target; do step "$side: PostgreSQL $MAJOR" start_server "$side" "$MAJOR"; done
ask source "ALTER SYSTEM SET max_wal_size = '4GB'; " && ask target "ALTER SYSTEM SET max_wal_size = '4GB'"
for side in source target; do ask "$side" "SELECT pg_reload_conf()" >/dev/null; done

cat >"$WORK/job.yaml" <<'YAML'
job: { id: bench }
source: { url_env: PGVEIL_SOURCE_URL, publication: bench, slot: bench }
target: { url_env: PGVEIL_TARGET_URL }
tables: [public.events]
policy: policy.yaml
YAML
cat >"$WORK/policy.yaml" <<'YAML'
version: 1
guests: { standard: { builtin: standard } }
keys: { people: { env: PGVEIL_KEY_PEOPLE } }
tables:
  public.events:
    columns:
      id: pass
      full_name: { mask: standard/name, key: people }
      email: { mask: standard/email, key: people }
      phone: { mask: standard/phone, key: people }
      reference: { mask: standard/hash, key: people, length: 32 }
      payload: pass
      at: pass
YAML
PGVEIL_SOURCE_URL=$(url source)
PGVEIL_TARGET_URL=$(url target)
PGVEIL_KEY_PEOPLE=$(printf 'the key of the benchmark' | sha256sum | cut -d' ' -f1)
export PGVEIL_SOURCE_URL PGVEIL_TARGET_URL PGVEIL_KEY_PEOPLE

# rows FROM TO: the statement that inserts so many rows.
rows() {
  cat <<SQL
INSERT INTO events SELECT n, 'Given' || n || ' Family' || n % 9973, 'person.' || n || '@mail' || n % 89 || '.test',
  '+49 1' || lpad((n * 7919 % 1000000000)::text, 9, '0'), md5(n::text), repeat(md5(n::text), 3), now() + n * interval '1 ms'
FROM generate_series($1::bigint, $2::bigint) AS n
SQL
}
load() {
  ask source "CREATE TABLE events (id bigint PRIMARY KEY, full_name text NOT NULL, email text NOT NULL, phone text,
    reference text, payload text, at timestamptz NOT NULL)"
  ask source "$(rows 1 "$SNAPSHOT_ROWS")"
  ask source "CREATE PUBLICATION bench FOR TABLE events" && ask source "VACUUM ANALYZE events"
}
step "$SNAPSHOT_ROWS rows to copy" load

printf '\n| %-38s | %10s | %8s | %9s | %8s |\n|---|--:|--:|--:|--:|\n' "what" rows seconds "rows/s" "peak MiB"
started=${EPOCHREALTIME/./}
pgveil bootstrap --once
ended
report "snapshot, $(ask source "SELECT pg_size_pretty(pg_table_size('events'))")" "$SNAPSHOT_ROWS" "$started" "$PEAK"

pgveil run
SAMPLES=()
started=${EPOCHREALTIME/./}
ask source "DO \$\$ BEGIN
  FOR step IN 0 .. $CHANGED_ROWS / 100 - 1 LOOP
    UPDATE events SET full_name = full_name || '!', at = now() WHERE id BETWEEN step * 100 + 1 AND step * 100 + 100;
    COMMIT;
  END LOOP;
END \$\$"
caught_up
report "stream, updates, 100 rows a transaction" "$CHANGED_ROWS" "$started" "$(memory VmHWM)"
flat="${SAMPLES[0]:-} ${SAMPLES[$((${#SAMPLES[@]} / 2))]:-} $(memory VmRSS)"

started=${EPOCHREALTIME/./}
ask source "$(rows $((SNAPSHOT_ROWS + 1)) $((SNAPSHOT_ROWS + TRANSACTION_ROWS)))"
caught_up
report "stream, one transaction of inserts" "$TRANSACTION_ROWS" "$started" "$(memory VmHWM)"
printf '\nresident over the stream of updates, first, middle and last sample: %s MiB\n' "$flat"

same="SELECT count(*) || ' ' || md5(string_agg(n::text, ',' ORDER BY n)) FROM (SELECT sum(id) n FROM events GROUP BY id % 1000) t"
[[ $(ask source "$same") == "$(ask target "$same")" ]] || die "source and target do not hold the same rows"
kill -TERM "$JOB"
ended
