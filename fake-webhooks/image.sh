#!/usr/bin/env bash
# Builds the image of the fakes from this tree, without a network: image.sh [TAG]
# With docker, or with what CONTAINER_TOOL names: podman, buildah.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
tag=${1:-admit-fakes:$version}
host=$(rustc -vV | sed -n 's/^host: //p')

# With --target the flags are those of the binary alone, not those of build scripts and macros.
RUSTFLAGS="-C target-feature=+crt-static" cargo build --quiet --profile image --target "$host" --package fake-webhooks
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
cp "target/$host/image/fake-webhooks" "$context/"
"${CONTAINER_TOOL:-docker}" build --quiet --tag "$tag" --file fake-webhooks/Containerfile "$context" >/dev/null
echo "$tag: $(stat -c %s "$context/fake-webhooks") bytes"
