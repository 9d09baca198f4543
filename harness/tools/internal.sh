#!/bin/sh
# Writes api-server/src/kinds/common/internal/types.json: how Go's encoder writes the internal types of the supported version that
# kube-apiserver shows in errors.
#
#   tools/internal.sh
#
# Needs Go, which downloads the modules from its configured proxy.
set -eu
version=37.1
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cp tools/internal.go "$folder/main.go"
kubernetes=$(cd "$folder" && go mod download -json "k8s.io/kubernetes@v1.$version" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
{
    printf 'module internaltypes\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/api v0.%s\n\tk8s.io/apimachinery v0.%s\n' "$version" "$version"
    printf '\tk8s.io/kubernetes v1.%s\n)\n\nreplace (\n' "$version"
    sed -n "s#^\t\(k8s.io/[a-z-]*\) => \./staging.*#\t\1 => \1 v0.$version#p" "$kubernetes"
    printf ')\n'
} >"$folder/go.mod"
(cd "$folder" && GOFLAGS=-mod=mod go run .) >"$folder/types.json"
mv "$folder/types.json" api-server/src/kinds/common/internal/types.json
