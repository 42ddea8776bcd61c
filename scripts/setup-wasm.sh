#!/usr/bin/env bash
# Makes `wasm32-unknown-unknown` and `wasm32-wasip1` buildable. Prints nothing and takes no time when they are.
#
# An ordinary machine: `rustup target add`. Where that download is closed: Debian's own compiler (packages rustc-web and
# its library sources) builds the standard library of both targets, and is linked into rustup as the toolchain `distro`.
# `scripts/wasm-toolchain.sh` says which of the two a guest is to be built with. PGVEIL_WASM_BY=distro skips rustup.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

TARGETS=(wasm32-unknown-unknown wasm32-wasip1)
DISTRO_LIB=/usr/lib/rustlib
# rustup's download either answers at once or hangs for good behind a closed network; a fetch takes a few seconds.
RUSTUP_PATIENCE=20

wasm_toolchain() { "$REPO/scripts/wasm-toolchain.sh" >/dev/null 2>&1; }

rustup_targets() { timeout "$RUSTUP_PATIENCE" rustup target add "${TARGETS[@]}"; }

distro_compiler() { apt_install rustc-web cargo-web rust-web-src wasi-libc; }

# Builds std for both targets in an empty crate and copies its libraries to where the compiler looks for them.
distro_std() {
  local work target library
  work=$(mktemp -d "${TMPDIR:-/tmp}/pgveil-std.XXXXXX")
  # shellcheck disable=SC2064  # expanded now: at exit the local name is gone
  trap "rm -rf '$work'" EXIT
  mkdir -p "$work/src"
  printf '#![no_std]\n' >"$work/src/lib.rs"
  printf '[package]\nname = "emptycrate"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n' >"$work/Cargo.toml"
  local flags=()
  for target in "${TARGETS[@]}"; do flags+=(--target "$target"); done
  (
    cd "$work"
    # A developer's flags and target directory are not meant for this build. The absolute cargo is no rustup proxy.
    unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET RUSTUP_TOOLCHAIN CARGO_INCREMENTAL
    CARGO_TARGET_DIR="$work/target" RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc \
      /usr/bin/cargo build --release -Zbuild-std=std,panic_abort,panic_unwind "${flags[@]}"
  )
  for target in "${TARGETS[@]}"; do
    as_root mkdir -p "$DISTRO_LIB/$target/lib/self-contained"
    # Leftovers of another compiler version would make every crate of std ambiguous.
    as_root find "$DISTRO_LIB/$target/lib" -maxdepth 1 -name '*.rlib' -delete
    for library in "$work/target/$target"/release/deps/*.rlib; do
      [[ $library == */libemptycrate-* ]] || as_root cp "$library" "$DISTRO_LIB/$target/lib/"
    done
  done
  as_root cp /usr/lib/wasm32-wasi/{crt1-command.o,crt1-reactor.o,libc.a} "$DISTRO_LIB/wasm32-wasip1/lib/self-contained/"
}

# Debian ships the compiler without `rust-lld`, the linker of both targets; rustup's toolchain has one.
distro_link() {
  local linker
  linker=$(rustc --print sysroot)/lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld
  [[ -x $linker ]] || die "rustup's toolchain has no rust-lld at $linker"
  as_root mkdir -p "$DISTRO_LIB/x86_64-unknown-linux-gnu/bin"
  # A copy of what the link leads to would break on its shared libraries: link, and let rustup keep it.
  as_root ln -sfn "$linker" "$DISTRO_LIB/x86_64-unknown-linux-gnu/bin/rust-lld"
  rustup toolchain link distro /usr
}

wasm_toolchain && exit 0
command -v rustup >/dev/null || die "rustup is missing: install Rust from https://rustup.rs"
if [[ ${PGVEIL_WASM_BY:-rustup} == rustup ]]; then
  # A refusal is no failure yet, so its output stays unseen: the second way follows.
  if step "" rustup_targets 2>/dev/null && wasm_toolchain; then
    say "WebAssembly targets: by rustup"
    exit 0
  fi
  say "WebAssembly targets: rustup's download is closed here; Debian's compiler builds them"
fi
step "WebAssembly targets: Debian's compiler" distro_compiler
step "WebAssembly targets: standard library of both" distro_std
step "WebAssembly targets: linked as toolchain distro" distro_link
wasm_toolchain || die "the WebAssembly targets still cannot be built: run \`bash -x scripts/wasm-toolchain.sh\`"
