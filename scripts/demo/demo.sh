#!/usr/bin/env bash
# The demo: a shop with personal data is copied from one throwaway cluster to another, and followed while it changes,
# every row masked on the way. Everything is made under target/demo and removed at the end.
#
#   KEEP=1                        leaves servers and job running and says what to type next
#   DEMO_SOURCE=15 DEMO_TARGET=18 the PostgreSQL versions
#   PGVEIL_BIN=…                  the binary, in place of the one built here
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
source "$REPO/scripts/demo/servers.sh"
source "$REPO/scripts/demo/verify.sh"

DEMO=$REPO/scripts/demo
SOURCE_MAJOR=${DEMO_SOURCE:-15}
TARGET_MAJOR=${DEMO_TARGET:-18}
TABLES=(users addresses orders payments support_messages)

title() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[[ -t 1 ]] || title() { printf '\n== %s\n' "$*"; }

build() {
  [[ -n ${PGVEIL_BIN:-} ]] && return
  PGVEIL_BIN=${CARGO_TARGET_DIR:-$REPO/target}/debug/pgveil
  # The whole workspace, as the tests build it: the two share every compiled crate.
  (cd "$REPO" && step "host and guests: cargo build" cargo build --quiet --workspace)
}

pgveil() { "$PGVEIL_BIN" --config "$DEMO/job.yaml" "$@"; }

# follow: `pgveil run` in the background, its output in a file.
follow() {
  setsid "$PGVEIL_BIN" --config "$DEMO/job.yaml" run >>"$WORK/pgveil.log" 2>&1 </dev/null &
  FOLLOWER=$!
}

unfollow() {
  [[ -n ${FOLLOWER:-} ]] || return 0
  kill -TERM "$FOLLOWER" 2>/dev/null || true
  local status=0
  wait "$FOLLOWER" || status=$?
  FOLLOWER=
  ((status == 0)) || die "pgveil run ended with exit code $status; the end of its log:
$(tail -n 20 "$WORK/pgveil.log")"
}

# caught_up: waits until the source's slot says that the target has flushed all that is committed now.
caught_up() {
  local position attempt
  position=$(ask source "SELECT pg_current_wal_flush_lsn()")
  for ((attempt = 0; attempt < 600; attempt++)); do
    [[ $(ask source "SELECT confirmed_flush_lsn >= '$position' FROM pg_replication_slots WHERE slot_name = 'pgveil_shop'") == t ]] && return
    kill -0 "$FOLLOWER" 2>/dev/null || break
    sleep 0.1
  done
  die "the stream has not reached $position; the end of its log:
$(tail -n 20 "$WORK/pgveil.log")"
}

finish() {
  local status=$?
  trap - EXIT INT TERM
  if ((status == 0)) && [[ -n ${KEEP:-} ]]; then return; fi
  [[ -n ${FOLLOWER:-} ]] && kill -TERM "$FOLLOWER" 2>/dev/null && { wait "$FOLLOWER" || true; }
  if ((status != 0)) && [[ -e $WORK/pgveil.log ]]; then
    cp "$WORK/pgveil.log" "$REPO/target/demo-failed.log"
    say "the demo failed (exit code $status); pgveil's log is kept: target/demo-failed.log"
  fi
  stop_server source immediate
  stop_server target immediate
  rm -rf "$WORK" "$REPO/target/demo"
  exit "$status"
}

started=$SECONDS
"$REPO/scripts/setup-postgres.sh" "$SOURCE_MAJOR" "$TARGET_MAJOR" 18
[[ -n ${PGVEIL_BIN:-} ]] || "$REPO/scripts/setup-wasm.sh"
CLIENTS=$("$REPO/scripts/pg-bin.sh" 18)
export PATH=$CLIENTS:$PATH
build

title "Two clusters and a shop"
make_workplace demo
trap finish EXIT
trap 'exit 130' INT TERM
step "source: PostgreSQL $SOURCE_MAJOR" start_server source "$SOURCE_MAJOR"
step "target: PostgreSQL $TARGET_MAJOR" start_server target "$TARGET_MAJOR"
PGVEIL_SOURCE_URL=$(url source)
PGVEIL_TARGET_URL=$(url target)
# A key for this demo only: anyone can read it here. A real one: openssl rand -hex 32
PGVEIL_KEY_PEOPLE=$(printf 'the key of the pgveil demo' | sha256sum | cut -d' ' -f1)
export PGVEIL_SOURCE_URL PGVEIL_TARGET_URL PGVEIL_KEY_PEOPLE
step "$(printf '%s rows of a shop' "about 20,000")" load_shop
remember_originals

title "pgveil check"
pgveil check
title "pgveil bootstrap --once"
pgveil bootstrap --once
title "pgveil run, while the shop goes on"
follow
step "inserts, updates, deletes, a key change" sql_file source "$DEMO/changes.sql"
step "the stream has caught up" caught_up
remember_originals
title "pgveil status"
pgveil status

title "Before and after"
show users "id IN (7, 42)" customer_number full_name email phone birth_date interests
show payments "order_id = 9001" order_id card_number card_holder amount
show support_messages "customer_number IN (SELECT customer_number FROM users WHERE id = 3001)" subject body client_address sent_at

title "Verified"
verify_rows
verify_keys
unfollow
if [[ -z ${KEEP:-} ]]; then pgveil cleanup --yes >>"$WORK/pgveil.log"; fi
verify_nothing_leaked

if [[ -n ${KEEP:-} ]]; then
  start_server target "$TARGET_MAJOR"
  follow
  disown
  cat <<NEXT

Left running. In this shell:

  export PGVEIL_SOURCE_URL=$PGVEIL_SOURCE_URL
  export PGVEIL_TARGET_URL=$PGVEIL_TARGET_URL
  export PGVEIL_KEY_PEOPLE=$PGVEIL_KEY_PEOPLE

  $CLIENTS/psql "\$PGVEIL_SOURCE_URL" -c "UPDATE users SET full_name = 'Anyone At-All' WHERE id = 1"
  $CLIENTS/psql "\$PGVEIL_TARGET_URL" -c "SELECT customer_number, full_name FROM users WHERE id = 1"
  $PGVEIL_BIN --config scripts/demo/job.yaml status
  tail -f $WORK/pgveil.log

and in the end:  scripts/demo/stop.sh
NEXT
  printf '%s\n' "$FOLLOWER" >"$WORK/pgveil.pid"
fi
printf '\nDone in %d s.\n' "$((SECONDS - started))"
