#!/bin/sh
# Writes api-server/src/tables/columns.json from the printers of the imitated version: the columns of built-in kinds.
#
#   tools/columns.sh
#
# Needs Go; its modules come from the proxy that Go is set up with.
set -eu
version=v1.37.1
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cp tools/columns.go "$folder/main.go"
printf 'module columns\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes %s\n' "$version" >"$folder/go.mod"
(cd "$folder" && go mod tidy >&2 && go run .) >"$folder/columns.json"
mv "$folder/columns.json" api-server/src/tables/columns.json
