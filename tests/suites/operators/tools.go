//go:build tools

// Package operators pins the operators whose suites run, and what only their tests import.
package operators

import (
	_ "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/gomega"
	_ "github.com/stretchr/testify/assert"
	_ "sigs.k8s.io/controller-runtime/pkg/envtest"
	_ "sigs.k8s.io/jobset/pkg/webhooks"
	_ "sigs.k8s.io/jobset/test/util"
	_ "sigs.k8s.io/lws/pkg/webhooks"
	_ "sigs.k8s.io/lws/test/testutils"
)
