#!/usr/bin/env bash
# Builds, installs, and runs the packages of each channel from local files, and the examples that use them.
#   packages/test.sh [CHANNEL]...    without arguments, all
# Each channel prints `CHANNEL: pass` or `skipped: admit packages CHANNEL: REASON`. ADMIT is the path of the binary;
# by default, cargo builds it.
set -euo pipefail
cd -P "$(dirname "$0")/.."
root=$PWD

channels=(go)
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

for channel in "$@"; do
  case $channel in
  go) go_module ;;
  *) echo "error: unknown channel $channel: must be one of ${channels[*]}" >&2 && exit 2 ;;
  esac
done
