# Shared by the setup scripts: one quiet line a step, with its seconds. Sourced, never run.
# shellcheck shell=bash

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly REPO

# say TEXT: a line for people.
say() { printf '  %s\n' "$*" >&2; }

# die TEXT: the reason and the remedy, then the end.
die() {
  printf '\n  error: %s\n' "$*" >&2
  exit 1
}

# step LABEL COMMAND...: runs COMMAND with its output kept in a log, and prints LABEL with the seconds it took.
# Of a command that fails, the last lines of the log are shown. COMMAND may be a function of the calling script.
# Call it as a plain line: inside `if`, `&&` or `||` bash would go on after a failing line of that function.
step() {
  local label=$1 log started status=0
  shift
  log=$(mktemp "${TMPDIR:-/tmp}/pgveil-setup.XXXXXX")
  started=$SECONDS
  [[ -t 2 ]] && printf '  %-54s' "$label …" >&2
  set +e
  (
    set -e
    "$@"
  ) >"$log" 2>&1 </dev/null
  status=$?
  set -e
  [[ -t 2 ]] && printf '\r' >&2
  if ((status != 0)); then
    printf '  %-54s failed (exit %d); the last lines of its output:\n' "$label" "$status" >&2
    tail -n 25 "$log" | sed 's/^/    | /' >&2
    rm -f "$log"
    return "$status"
  fi
  rm -f "$log"
  printf '  %-54s %4d s\n' "$label" "$((SECONDS - started))" >&2
}

# as_root COMMAND...: runs it as root, by sudo when the caller is someone else.
as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo -n "$@" || die "\`sudo $1\` needs a password: run \`sudo -v\` first, or this script as root"
  else
    die "\`$1\` must run as root, and there is no sudo: run this script as root"
  fi
}

# apt_install PACKAGE...: Debian packages; the package lists are fetched once, and only when a package is unknown.
apt_install() {
  command -v apt-get >/dev/null || die "this machine has no apt-get: install $* by hand"
  local options=(-qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install "${options[@]}" "$@" ||
    { as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive apt-get install "${options[@]}" "$@"; }
}
