#!/bin/sh
# Writes what Kubernetes' own packages make of the conformance tests of CEL, one JSON line a test, to standard output.
# The tests stay in Go's module cache.
#
#   tests/cel/conformance.sh >FILE
#
# Needs Go; its modules come from the proxy that Go is set up with. The first build takes some minutes.
set -eu
cd "$(dirname "$0")"
go mod download cel.dev/expr
go run ./conformance "$(go list -m -f '{{.Dir}}' cel.dev/expr)/tests/simple/testdata"
