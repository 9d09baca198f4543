#!/usr/bin/env bash
# Prints the size, startup time, and memory of the release binary, for docs/project/performance.md.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --profile dist --quiet
admit=target/dist/admit
folder=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT

milliseconds() { date +%s%N | cut -c1-13; }

printf 'binary, stripped: %s MB\n' "$(($(stat -c %s "$admit") / 1000000))"

best=
for _ in 1 2 3 4 5; do
  started=$(milliseconds)
  "$admit" --version >/dev/null
  took=$(($(milliseconds) - started))
  [ -z "$best" ] || [ "$took" -lt "$best" ] && best=$took
done
printf 'admit --version: %s ms\n' "$best"

started=$(milliseconds)
"$admit" serve --listen 127.0.0.1:0 --kubeconfig-out "$folder/kubeconfig" >"$folder/out" &
server=$!
until grep -q https "$folder/out"; do :; done
printf 'admit serve ready: %s ms\n' "$(($(milliseconds) - started))"
printf 'admit serve resident when idle: %s MB\n' "$(($(awk '/^VmRSS/ {print $2}' "/proc/$server/status") / 1000))"
kill "$server"

started=$(milliseconds)
first=
while IFS= read -r line; do
  case $line in *' ok '*) [ -n "$first" ] || first=$(($(milliseconds) - started)) ;; esac
done < <("$admit" run)
printf 'admit run: %s ms, first scenario after %s ms\n' "$(($(milliseconds) - started))" "$first"
