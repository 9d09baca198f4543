#!/usr/bin/env bash
# Builds images from this tree, without a network, and prints what each weighs: images.sh [NAME[:TAG]]...
#   admit        the command: for `admit verify` as a Job
#   admit-fakes  the fakes: for `admit fakes deploy`
# Without arguments both; without a tag, that of this version. With docker, or with what CONTAINER_TOOL names: podman,
# buildah.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
host=$(rustc -vV | sed -n 's/^host: //p')
[ $# -gt 0 ] || set -- admit admit-fakes

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
for image; do
  case ${image%%:*} in
    admit) binary=admit ;;
    admit-fakes) binary=fake-webhooks ;;
    *)
      echo "there is no image ${image%%:*}: there are admit and admit-fakes" >&2
      exit 2
      ;;
  esac
  case $image in *:*) ;; *) image=$image:$version ;; esac
  # With --target the flags are those of the binary alone, not those of build scripts and macros.
  RUSTFLAGS="-C target-feature=+crt-static" cargo build --quiet --profile image --target "$host" --package "$binary"
  cp "target/$host/image/$binary" "$context/"
  # The binary and nothing else, as any user but root: it needs no rights and no home. What is freed goes back to the system
  # at once: a container has a limit, and a purge that mimalloc delays can be delayed for ever
  # (https://github.com/microsoft/mimalloc/issues/1246).
  "${CONTAINER_TOOL:-docker}" build --quiet --tag "$image" --file - "$context" >/dev/null <<FILE
FROM scratch
COPY $binary /$binary
ENV MIMALLOC_PURGE_DELAY=0
USER 65532:65532
ENTRYPOINT ["/$binary"]
FILE
  echo "$image: $(stat -c %s "$context/$binary") bytes"
done
