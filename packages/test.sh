#!/usr/bin/env bash
# Builds, installs, and runs the packages of each channel from local files, and the examples that use them.
#   packages/test.sh [CHANNEL]...    without arguments, all
# Each channel prints `CHANNEL: pass` or `skipped: admit packages CHANNEL: REASON`. ADMIT is the path of the binary;
# by default, cargo builds it.
set -euo pipefail
cd -P "$(dirname "$0")/.."
root=$PWD

channels=(go python npm)
[ $# != 0 ] || set -- "${channels[@]}"

target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
if [ -z "${ADMIT:-}" ]; then
  cargo build --quiet --bin admit
  ADMIT=$target/debug/admit
fi
export ADMIT
scratch=$(mktemp -d)
clean() {
  # setup-envtest and the Go module cache create read-only directories.
  chmod -R u+w "$scratch"
  rm -rf "$scratch"
}
trap clean EXIT

# needs CHANNEL PROGRAM...: reports that the channel is skipped if a program is missing
needs() {
  local channel=$1 program
  shift
  for program in "$@"; do
    command -v "$program" >/dev/null || {
      echo "skipped: admit packages $channel: no $program on PATH"
      return 1
    }
  done
}

# platform: this machine as the release names it, such as linux-x86_64
platform() {
  uname -sm | tr '[:upper:] ' '[:lower:]-'
}

# The Go module, its submodule, and the example with controller-runtime.
go_module() {
  needs go go || return 0
  local module unformatted
  for module in go/admittest go/admittest/rest examples/go; do
    (
      cd "$module"
      unformatted=$(gofmt -l .)
      [ -z "$unformatted" ] || { echo "error: run gofmt -w in $module: $unformatted" >&2 && exit 1; }
      go mod tidy -diff
      go vet ./...
      go test -count=1 ./...
    )
  done
  echo 'go: pass'
}

# The wheel in a new virtual environment: the command, the module, the pytest plugin, and the example.
python_wheel() {
  needs python python3 || return 0
  # Debian has a separate package for it.
  python3 -c 'import ensurepip, venv' 2>/dev/null || {
    echo 'skipped: admit packages python: no venv in python3'
    return 0
  }
  local python=$scratch/venv/bin
  python3 packages/python/build.py --binary "$ADMIT" --platform "$(platform)" --out "$scratch/wheels" >/dev/null
  python3 -m venv "$scratch/venv"
  "$python/pip" install --quiet --disable-pip-version-check 'pytest>=7' "$scratch"/wheels/*.whl
  "$python/admit" --version
  # Without ADMIT, the module uses the binary of the wheel.
  for tests in packages/python/tests examples/python; do
    env --unset=ADMIT PYTHONDONTWRITEBYTECODE=1 "$python/python" -m pytest --quiet -p no:cacheprovider "$tests"
  done
  echo 'python: pass'
}

# The npm packages in an empty project: the command, the module, and the example in TypeScript.
npm_packages() {
  needs npm node npm || return 0
  local packages=$scratch/npm project=$scratch/project archives own
  node packages/npm/build.mjs --out "$packages" "$(platform)=$ADMIT"
  own=$(cd "$packages" && echo "$(node -p 'process.platform')-$(node -p 'process.arch')")
  (cd "$packages" && npm pack --silent ./admit "./$own" >/dev/null)
  archives=("$packages"/*.tgz)
  cp -r examples/typescript "$project"
  # The packages of the other platforms, and those of the example, are not in the registry before a release.
  (
    cd "$project"
    npm pkg delete 'devDependencies.@admit-dev/admit'
    npm install --silent --no-audit --no-fund "${archives[@]}"
    npx admit --version
    unset ADMIT
    npm test --silent
    cp "$root/packages/npm/tests/admit.test.mjs" .
    node --test admit.test.mjs
  )
  echo 'npm: pass'
}

for channel in "$@"; do
  case $channel in
  go) go_module ;;
  python) python_wheel ;;
  npm) npm_packages ;;
  *) echo "error: unknown channel $channel: must be one of ${channels[*]}" >&2 && exit 2 ;;
  esac
done
