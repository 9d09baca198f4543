#!/bin/sh
# Evaluates the expressions in expressions.jsonl and rules.jsonl with Kubernetes' own packages and records the results.
# To add an expression, append a line with `expr` and, unless it uses the default, `context`: a name from contexts.json.
# To add a rule of a custom resource to rules.jsonl, also set `schema`, a name from schemas.json; `context` is then one of
# its documents.
#
#   tests/cel/regenerate.sh
#
# Needs Go, which downloads the modules from its configured proxy. The first build takes some minutes.
set -eu
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
go build -o "$folder/oracle" ./oracle
for file in expressions.jsonl rules.jsonl; do
    "$folder/oracle" contexts.json schemas.json <$file >"$folder/answers"
    # Results that depend on the order of a map differ from run to run, so they are not recorded.
    for _ in 1 2 3; do
        "$folder/oracle" contexts.json schemas.json <$file | cmp - "$folder/answers"
    done
    mv "$folder/answers" $file
done
