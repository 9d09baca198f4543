#!/bin/sh
# Prints the results of Kubernetes' own packages for the CEL conformance tests, one JSON line per test.
# The tests remain in Go's module cache.
#
#   tests/cel/conformance.sh >FILE
#
# Needs Go, which downloads the modules from its configured proxy. The first build takes some minutes.
set -eu
cd "$(dirname "$0")"
go mod download cel.dev/expr
go run ./conformance "$(go list -m -f '{{.Dir}}' cel.dev/expr)/tests/simple/testdata"
