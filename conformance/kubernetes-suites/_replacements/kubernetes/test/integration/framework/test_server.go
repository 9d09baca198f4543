package framework

import (
	"context"
	"os"
	"path"
	"reflect"
	"strings"
	"testing"

	"admit.dev/conformance/kubernetes-suites/apiserver"
	"github.com/google/uuid"
	"github.com/spf13/pflag"

	genericapiserver "k8s.io/apiserver/pkg/server"
	client "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controlplane"
	"k8s.io/kubernetes/pkg/serviceaccount"
	"k8s.io/kubernetes/test/e2e/invariants/metrics"
)

type TestServerSetup struct {
	ModifyServerRunOptions func(*options.ServerRunOptions)
	ModifyServerConfig     func(*controlplane.Config)
	DisableInvariantChecks bool
}

type TearDownFunc func()

// StartTestServer runs the API server in its own process, with flags for the options that the test sets.
func StartTestServer(ctx context.Context, t testing.TB, setup TestServerSetup) (client.Interface, *rest.Config, TearDownFunc) {
	t.Helper()
	features, err := apiserver.NewFeatures()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "kubernetes-suites-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	opts := options.NewServerRunOptions()
	opts.GenericServerRunOptions.ComponentGlobalsRegistry = features.Registry
	parsed := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range opts.Flags().FlagSets {
		parsed.AddFlagSet(set)
	}
	opts.Etcd.StorageConfig.Prefix = path.Join("/", uuid.New().String(), "registry")
	opts.Etcd.StorageConfig.Transport.ServerList = []string{GetEtcdURL()}
	base, err := apiserver.BaseFlags(dir, &opts.Etcd.StorageConfig)
	if err != nil {
		t.Fatal(err)
	}
	opts.ServiceClusterIPRanges = "10.0.0.0/16"
	opts.ServiceAccountSigningKeyFile = apiserver.SigningKeyFile(dir)
	opts.Authentication.ServiceAccounts.KeyFiles = []string{apiserver.SigningKeyFile(dir)}
	opts.Authentication.ServiceAccounts.Issuers = []string{apiserver.Issuer}
	opts.Authentication.ClientCert.ClientCA = apiserver.ClientCAFile(dir)
	before := values(parsed)
	opts.Authentication.APIAudiences = []string{apiserver.Issuer}
	opts.Authorization.Modes = []string{"Node", "RBAC"}
	if setup.ModifyServerRunOptions != nil {
		setup.ModifyServerRunOptions(opts)
	}
	var changed []string
	for name, value := range values(parsed) {
		if value != before[name] {
			changed = append(changed, "--"+name+"="+value)
			parsed.Lookup(name).Changed = true
		}
	}
	if setup.ModifyServerConfig != nil {
		flags, ok := configurationFlags(setup.ModifyServerConfig)
		if !ok {
			t.Skip("in process only: the configuration of the server")
		}
		changed = append(changed, flags...)
	}
	if err := features.Apply(t); err != nil {
		t.Fatal(err)
	}
	server, err := apiserver.Start(apiserver.Options{
		Test:      t.Name(),
		Dir:       dir,
		TokenFile: opts.Authentication.TokenFile.TokenFile,
		Flags:     append(apiserver.Without(base, parsed), apiserver.Supported(changed)...),
	})
	if err != nil {
		t.Fatal(err)
	}
	config := server.Config()
	config.CAData, config.CAFile = nil, server.Certificate()
	clientset, err := client.NewForConfig(config)
	if err != nil {
		server.Stop()
		t.Fatal(err)
	}
	return clientset, config, func() {
		if !setup.DisableInvariantChecks {
			if err := metrics.CheckMetricInvariants(context.WithoutCancel(ctx), clientset, false); err != nil {
				t.Errorf("Invariant check failed: %v", err)
			}
		}
		server.Stop()
	}
}

// values returns the values of flags.
func values(flags *pflag.FlagSet) map[string]string {
	all := map[string]string{}
	flags.VisitAll(func(flag *pflag.Flag) {
		value := flag.Value.String()
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		all[flag.Name] = value
	})
	return all
}

// configurationFlags returns the flags for what modify changes, or false if flags cannot express it.
func configurationFlags(modify func(*controlplane.Config)) (flags []string, ok bool) {
	// modify may use fields that only the configuration of a running server has.
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	key, err := keyutil.ParsePrivateKeyPEM(apiserver.SigningKey())
	if err != nil {
		return nil, false
	}
	issuer, err := serviceaccount.JWTTokenGenerator(apiserver.Issuer, key)
	if err != nil {
		return nil, false
	}
	configuration := func() *controlplane.Config {
		config := &controlplane.Config{}
		config.ControlPlane.Generic = &genericapiserver.Config{LoopbackClientConfig: &rest.Config{BearerToken: "token"}}
		config.ControlPlane.Extra.ServiceAccountIssuer = issuer
		config.ControlPlane.Extra.ExtendExpiration = true
		return config
	}
	config, unchanged := configuration(), configuration()
	modify(config)
	if lifetime := config.ControlPlane.Extra.ServiceAccountMaxExpiration; lifetime > 0 {
		flags = append(flags, "--service-account-max-token-expiration="+lifetime.String())
		unchanged.ControlPlane.Extra.ServiceAccountMaxExpiration = lifetime
	}
	return flags, reflect.DeepEqual(config, unchanged)
}
