#!/bin/sh
# Writes types/src/schema/messages.json from the Go types and the OpenAPI of the supported version: the types of the kinds in
# api-server/src/kinds/discovery.json, the protobuf numbers and JSON names of their fields, and how patches and server-side apply
# treat the fields.
#
#   tools/messages.sh
#
# Needs Go, which downloads the modules from its configured proxy.
set -eu
version=v0.37.1
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cp tools/messages.go "$folder/main.go"
{
    printf 'module messages\n\ngo 1.26.0\n\nrequire (\n'
    for module in api apiextensions-apiserver apimachinery client-go kube-aggregator; do
        printf '\tk8s.io/%s %s\n' "$module" "$version"
    done
    printf ')\n'
} >"$folder/go.mod"
discovery=$PWD/api-server/src/kinds/discovery.json
kubernetes=$(cd "$folder" && go mod download -json "k8s.io/kubernetes@v1${version#v0}" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
mkdir -p types/src/schema
(cd "$folder" && go mod tidy >&2 && go run . "$discovery" "$kubernetes/api/openapi-spec/v3") >"$folder/messages.json"
mv "$folder/messages.json" types/src/schema/messages.json
