//go:build tools

// Package suites pins what the tests of controller-runtime need beside its own packages.
package suites

import (
	_ "github.com/google/gofuzz"
)
