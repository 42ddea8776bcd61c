#!/usr/bin/env bash
# Prints the rustup toolchain that builds guests: the active one when it has both WebAssembly targets, else `distro`.
# Fails, printing what to do on standard error, when neither can. Use: cargo "+$(scripts/wasm-toolchain.sh)" build …
set -euo pipefail

# has_targets SYSROOT: the standard library of both targets is there.
has_targets() {
  local target
  for target in wasm32-unknown-unknown wasm32-wasip1; do
    compgen -G "$1/lib/rustlib/$target/lib/libstd-*.rlib" >/dev/null || return 1
  done
}

# The toolchain that rustup has active, without the parenthesis behind its name.
active=$(rustup show active-toolchain 2>/dev/null | cut -d' ' -f1)
if [[ -n $active && ${PGVEIL_WASM_BY:-rustup} == rustup ]] && has_targets "$(rustc --print sysroot)"; then
  echo "$active"
elif [[ $(rustup toolchain list) == *distro* ]] && has_targets /usr &&
  [[ -x /usr/lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld ]]; then
  echo distro
else
  echo "no toolchain builds wasm32-unknown-unknown and wasm32-wasip1: run scripts/setup-wasm.sh" >&2
  exit 1
fi
