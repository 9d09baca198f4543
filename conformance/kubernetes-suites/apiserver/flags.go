package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
)

// Issuer is the issuer of service account tokens.
const Issuer = "https://foo.bar.example.com"

// SigningKey returns the key of service account tokens in PEM. All servers of a test share it.
var SigningKey = sync.OnceValue(func() []byte {
	key, err := newKey()
	if err != nil {
		panic(err)
	}
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		panic(err)
	}
	return pem
})

// SigningKeyFile returns the path of the key of service account tokens.
func SigningKeyFile(dir string) string { return filepath.Join(dir, "service-accounts.key") }

// ClientCAFile returns the path of the certificate authority of clients.
func ClientCAFile(dir string) string { return filepath.Join(dir, "client-ca.crt") }

// BaseFlags returns the flags of every server, and writes the files that they name to dir.
func BaseFlags(dir string, storage *storagebackend.Config) ([]string, error) {
	if err := os.WriteFile(SigningKeyFile(dir), SigningKey(), 0o600); err != nil {
		return nil, err
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	authority, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "client-ca"}, key)
	if err != nil {
		return nil, err
	}
	pem, err := cert.EncodeCertificates(authority)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(ClientCAFile(dir), pem, 0o600); err != nil {
		return nil, err
	}
	return append(processFlags(),
		"--etcd-servers="+strings.Join(storage.Transport.ServerList, ","),
		"--etcd-prefix="+storage.Prefix,
		"--service-cluster-ip-range=10.0.0.0/16",
		"--service-account-issuer="+Issuer,
		"--service-account-signing-key-file="+SigningKeyFile(dir),
		"--service-account-key-file="+SigningKeyFile(dir),
		"--client-ca-file="+ClientCAFile(dir),
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
	), nil
}

// Without returns flags without those that test sets.
func Without(flags []string, test *pflag.FlagSet) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(flag string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		return test.Changed(name) && name != "feature-gates"
	})
}

// Supported returns the flags of a test without what admit does not have: the Node authorizer, which it rejects, and all
// alpha and beta features at once. admit ignores --feature-gates, but with these features clients send CBOR.
func Supported(flags []string) []string {
	if !IsAdmit() {
		return flags
	}
	var supported []string
	for _, flag := range flags {
		if !strings.HasPrefix(flag, "--feature-gates=AllAlpha=true") {
			supported = append(supported, strings.Replace(flag, "Node,RBAC", "RBAC", 1))
		}
	}
	return supported
}

// processFlags returns the flags that give a server the version and the features of the test's process.
func processFlags() (flags []string) {
	gate := utilfeature.DefaultMutableFeatureGate
	if version := gate.EmulationVersion(); !version.EqualTo(compatibility.DefaultKubeEffectiveVersionForTest().BinaryVersion()) {
		flags = append(flags, fmt.Sprintf("--emulated-version=%d.%d", version.Major(), version.Minor()), "--runtime-config-emulation-forward-compatible")
	}
	var features []string
	for feature, spec := range gate.GetAll() {
		name := string(feature)
		// Tests register features of their own, and features that represent others.
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "All") {
			continue
		}
		if enabled := utilfeature.DefaultFeatureGate.Enabled(feature); enabled != spec.Default {
			features = append(features, fmt.Sprintf("%s=%t", name, enabled))
		}
	}
	if len(features) > 0 {
		slices.Sort(features)
		flags = append(flags, "--feature-gates="+strings.Join(features, ","))
	}
	return flags
}

// Features are the version and the features that the flags of a server select.
type Features struct {
	// Registry is the registry for the options of the server.
	Registry basecompatibility.ComponentGlobalsRegistry
	gate     featuregate.MutableVersionedFeatureGate
	version  basecompatibility.MutableEffectiveVersion
}

// NewFeatures returns the version and the features of the test's process.
func NewFeatures() (*Features, error) {
	features := &Features{
		Registry: basecompatibility.NewComponentGlobalsRegistry(),
		gate:     utilfeature.DefaultMutableFeatureGate.DeepCopy(),
		version:  compatibility.DefaultKubeEffectiveVersionForTest(),
	}
	features.version.SetEmulationVersion(features.gate.EmulationVersion())
	features.version.SetMinCompatibilityVersion(features.gate.MinCompatibilityVersion())
	return features, features.Registry.Register(basecompatibility.DefaultKubeComponent, features.version, features.gate)
}

// Apply gives the test's process the features of the server, until the test ends.
func (f *Features) Apply(t featuregatetesting.TB) error {
	if err := f.Registry.Set(); err != nil {
		return err
	}
	process := utilfeature.DefaultMutableFeatureGate
	if !f.gate.EmulationVersion().EqualTo(process.EmulationVersion()) || !f.gate.MinCompatibilityVersion().EqualTo(process.MinCompatibilityVersion()) {
		featuregatetesting.SetFeatureGateVersionsDuringTest(t, process, f.version.EmulationVersion(), f.version.MinCompatibilityVersion())
	}
	changed := map[featuregate.Feature]bool{}
	for feature := range process.GetAll() {
		if enabled := f.gate.Enabled(feature); enabled != utilfeature.DefaultFeatureGate.Enabled(feature) {
			changed[feature] = enabled
		}
	}
	if len(changed) > 0 {
		featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, changed)
	}
	return nil
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }
