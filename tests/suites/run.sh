#!/usr/bin/env bash
# Suites that start envtest, on what `admit assets` makes and, with KUBEBUILDER_ASSETS, on the real binaries, spec by spec.
# Needs Go; the modules come from its proxy, in the versions of go.mod and operators/go.mod.
#   tests/suites/run.sh [PACKAGE...]    packages of controller-runtime, such as webhook, and operators, such as jobset;
#                                       without any, all that start envtest
set -euo pipefail
cd "$(dirname "$0")"
cargo build --quiet --manifest-path ../../Cargo.toml --bin admit
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
admit=$("$target/debug/admit" assets --dir "$scratch/assets")
# As kube-apiserver is built: what it compiled is not compiled again.
export CGO_ENABLED=0 GOFLAGS=-trimpath
# On a busy machine the real binaries take longer than the 20 seconds that envtest gives them.
export KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m
real=()
[ -z "${KUBEBUILDER_ASSETS:-}" ] || real=(-real "$KUBEBUILDER_ASSETS")
for assets in "$admit" ${real[1]:+"${real[1]}"}; do
  echo "smallest, on $assets"
  KUBEBUILDER_ASSETS=$assets go test -count=1 ./smallest
done
go run ./compare -admit "$admit" ${real[@]+"${real[@]}"} "$@"
