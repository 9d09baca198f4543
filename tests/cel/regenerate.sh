#!/bin/sh
# Asks Kubernetes' own packages once more what they make of the expressions of expressions.jsonl and rules.jsonl, and
# writes that down. To add an expression, append a line with `expr` and, unless the default is meant, `context`: a name of
# contexts.json. To add a rule of a custom resource to rules.jsonl, say `schema` as well, a name of schemas.json; `context`
# is then one of its documents.
#
#   tests/cel/regenerate.sh
#
# Needs Go; its modules come from the proxy that Go is set up with. The first build takes some minutes.
set -eu
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
go build -o "$folder/oracle" ./oracle
for file in expressions.jsonl rules.jsonl; do
    "$folder/oracle" contexts.json schemas.json <$file >"$folder/answers"
    # What depends on the order of a map differs from run to run, and belongs in no file.
    for _ in 1 2 3; do
        "$folder/oracle" contexts.json schemas.json <$file | cmp - "$folder/answers"
    done
    mv "$folder/answers" $file
done
