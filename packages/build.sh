#!/usr/bin/env bash
# Builds the packages of a release from its archives.
#   packages/build.sh ARCHIVES OUT
# ARCHIVES contains admit-*.tar.gz and SHA256SUMS. Requires Python and Node.js with npm.
set -euo pipefail
archives=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
cd -P "$(dirname "$0")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

(cd "$archives" && sha256sum --check --quiet SHA256SUMS)
binaries=()
for archive in "$archives"/admit-*.tar.gz; do
  platform=$(basename "$archive" .tar.gz)
  platform=${platform#admit-}
  platform=${platform##*-}-${platform%-*}
  mkdir "$scratch/$platform"
  tar -xzf "$archive" -C "$scratch/$platform" admit
  python/build.py --binary "$scratch/$platform/admit" --platform "$platform" --out "$out" >/dev/null
  binaries+=("$platform=$scratch/$platform/admit")
done
node npm/build.mjs --out "$scratch/npm" "${binaries[@]}"
(cd "$scratch/npm" && for package in */; do npm pack --silent --pack-destination "$out" "./$package" >/dev/null; done)
./release.py envtest --archives "$archives" --out "$out"
./release.py manifests --sums "$archives/SHA256SUMS" --out "$out"
