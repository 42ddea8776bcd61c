#!/usr/bin/env bash
# Stops what `make demo KEEP=1` left running, and removes it. stop.sh bench: what a broken benchmark left.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
source "$REPO/scripts/demo/servers.sh"

LINK=$REPO/target/${1:-demo}
WORK=$(readlink -f "$LINK")
if [[ ! -d $WORK ]]; then
  rm -f "$LINK"
  exit
fi
if [[ -s $WORK/pgveil.pid ]]; then
  pid=$(cat "$WORK/pgveil.pid")
  # Only if it is still that program: numbers are given out again.
  if grep -qa pgveil "/proc/$pid/cmdline" 2>/dev/null; then kill -TERM "$pid"; fi
fi
stop_server source immediate
stop_server target immediate
rm -rf "$WORK" "$LINK"
