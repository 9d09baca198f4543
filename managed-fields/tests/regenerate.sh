#!/bin/sh
# Asks Kubernetes' own packages once more what they make of the questions in facts/*.jsonl, and writes that down. To add a
# question, append a line `{"ask": ...}`; oracle/main.go says what can be asked.
#
#   managed-fields/tests/regenerate.sh
#
# Needs Go; its modules come from the proxy that Go is set up with.
set -eu
export TZ=UTC
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
go -C oracle build -o "$folder/oracle" .
for file in facts/*.jsonl; do
    "$folder/oracle" schemas.json <"$file" >"$folder/answers"
    # What depends on the order of a map differs from run to run, and belongs in no file.
    for _ in 1 2 3; do
        "$folder/oracle" schemas.json <"$file" | cmp - "$folder/answers"
    done
    mv "$folder/answers" "$file"
done
