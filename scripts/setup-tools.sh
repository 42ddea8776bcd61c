#!/usr/bin/env bash
# Installs the cargo subcommands that building and testing need, each only when it is missing. Quiet when all are there.
#
#   scripts/setup-tools.sh [nextest] [component] [deny]     (default: all three)
#
# They are compiled from crates.io with their own lock files, into one shared target directory, so that what one has
# compiled the next one reuses. Cold, on two cores: nextest and deny about four minutes each, component about five.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

NEXTEST=0.9.143
COMPONENT=0.21.1
DENY=0.20.2

# install CRATE VERSION FLAGS...
install() {
  local crate=$1 version=$2
  shift 2
  # A developer's profile and flags are not meant for tools; half an hour bounds a build that would never end.
  env -u RUSTFLAGS -u CARGO_BUILD_TARGET CARGO_TARGET_DIR="${PGVEIL_TOOLS_TARGET:-${TMPDIR:-/tmp}/pgveil-tools-$EUID}" \
    timeout 1800 cargo install --quiet --locked "$@" "$crate@$version"
}

# Any version of nextest and deny does; cargo-component decides what a guest looks like, so its version is exact.
for tool in "${@:-nextest component deny}"; do
  for name in $tool; do
    case $name in
      nextest)
        command -v cargo-nextest >/dev/null ||
          step "cargo-nextest $NEXTEST: compiling" install cargo-nextest "$NEXTEST" --no-default-features --features default-no-update
        ;;
      component)
        [[ $(cargo-component --version 2>/dev/null) == "cargo-component $COMPONENT" ]] ||
          step "cargo-component $COMPONENT: compiling" install cargo-component "$COMPONENT" --force
        ;;
      deny)
        command -v cargo-deny >/dev/null ||
          step "cargo-deny $DENY: compiling" install cargo-deny "$DENY"
        ;;
      *) die "no such tool: $name (nextest, component, deny)" ;;
    esac
  done
done
