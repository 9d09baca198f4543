#!/bin/sh
# Writes api-server/src/kinds/common/columns.json from the printers of the supported version: the columns of built-in kinds.
#
#   tools/columns.sh
#
# Needs Go, which downloads the modules from its configured proxy.
set -eu
version=v1.37.1
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cp tools/columns.go "$folder/main.go"
kubernetes=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
{
    printf 'module columns\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes %s\n\n' "$version"
    # The staging modules of kubernetes are published with their own version numbers.
    sed -n "s|^\t\(k8s.io/[a-z0-9-]*\) v0\.0\.0\( .*\)\{0,1\}$|replace \1 => \1 v0${version#v1}|p" "$kubernetes/go.mod" | sort -u
} >"$folder/go.mod"
(cd "$folder" && go mod tidy >&2 && go run .) >"$folder/columns.json"
mv "$folder/columns.json" api-server/src/kinds/common/columns.json
