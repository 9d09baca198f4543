#!/bin/sh
# Writes src/server/protobuf/messages.json from the Go types of the imitated version: which protobuf messages there are
# for the kinds of src/server/discovery.json, and the JSON of their fields.
#
#   tools/protobuf.sh
#
# Needs Go; its modules come from the proxy that Go is set up with.
set -eu
version=v0.37.1
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cp tools/protobuf.go "$folder/main.go"
{
    printf 'module protobuf\n\ngo 1.26.0\n\nrequire (\n'
    for module in api apiextensions-apiserver apimachinery client-go kube-aggregator; do
        printf '\tk8s.io/%s %s\n' "$module" "$version"
    done
    printf ')\n'
} >"$folder/go.mod"
discovery=$PWD/src/server/discovery.json
mkdir -p src/server/protobuf
(cd "$folder" && go mod tidy >&2 && go run . "$discovery") >"$folder/messages.json"
mv "$folder/messages.json" src/server/protobuf/messages.json
