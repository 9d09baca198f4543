#!/bin/sh
# Writes admission/tests/data/strategic-merge.jsonl: random strategic merge patches, and the results of the library
# of the supported version.
#
#   tools/strategic_merge.sh [COUNT [SEED]]
#
# Needs Go, which downloads the modules from its configured proxy.
set -eu
version=v0.37.1
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cp tools/strategic_merge.go "$folder/main.go"
printf 'module strategic\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/api %s\n\tk8s.io/apimachinery %s\n)\n' "$version" "$version" >"$folder/go.mod"
mkdir -p admission/tests/data
(cd "$folder" && go mod tidy >&2 && go run . "${1:-1000}" "${2:-1}") >"$folder/recorded.jsonl"
mv "$folder/recorded.jsonl" admission/tests/data/strategic-merge.jsonl
