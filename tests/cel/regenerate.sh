#!/bin/sh
# Asks Kubernetes' own packages once more what they make of the expressions of expressions.jsonl, and writes that down.
# To add an expression, append a line with `expr` and, unless the default is meant, `context`: a name of contexts.json.
#
#   tests/cel/regenerate.sh
#
# Needs Go; its modules come from the proxy that Go is set up with. The first build takes some minutes.
set -eu
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
go build -o "$folder/oracle" ./oracle
"$folder/oracle" contexts.json <expressions.jsonl >"$folder/answers"
# What depends on the order of a map differs from run to run, and belongs in no file.
for _ in 1 2 3; do
    "$folder/oracle" contexts.json <expressions.jsonl | cmp - "$folder/answers"
done
mv "$folder/answers" expressions.jsonl
