// Package testing replaces the package of the same path in the API server for custom resources. Its StartTestServer runs
// a whole kube-apiserver in its own process.
package testing

import (
	"errors"
	"io"
	"os"
	"strings"

	"admit.dev/conformance/kubernetes-suites/apiserver"
	"github.com/spf13/pflag"

	extensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	restclient "k8s.io/client-go/rest"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
)

// passed are the flags of a test that kube-apiserver has, too. Storage and features have flags of their own.
var passed = []string{
	"disable-admission-plugins", "enable-admission-plugins", "encryption-provider-config", "max-requests-inflight", "request-timeout",
	"watch-cache",
}

type TearDownFunc func()

type TestServerInstanceOptions struct{}

type TestServer struct {
	ClientConfig    *restclient.Config
	ServerOpts      *options.CustomResourceDefinitionsServerOptions
	TearDownFn      TearDownFunc
	TmpDir          string
	CompletedConfig extensionsapiserver.CompletedConfig
}

type Logger interface {
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

func NewDefaultTestServerOptions() *TestServerInstanceOptions { return &TestServerInstanceOptions{} }

// StartTestServer starts a server with the flags of the test that kube-apiserver has.
func StartTestServer(t Logger, _ *TestServerInstanceOptions, customFlags []string, storage *storagebackend.Config) (result TestServer, err error) {
	test, ok := t.(featuregatetesting.TB)
	named, hasName := t.(interface{ Name() string })
	if !ok || !hasName {
		return result, errors.New("the test server needs a testing.TB")
	}
	features, err := apiserver.NewFeatures()
	if err != nil {
		return result, err
	}
	opts := options.NewCustomResourceDefinitionsServerOptions(io.Discard, io.Discard)
	opts.ServerRunOptions.ComponentGlobalsRegistry = features.Registry
	parsed := pflag.NewFlagSet("apiextensions-apiserver", pflag.ContinueOnError)
	opts.AddFlags(parsed)
	etcd := &opts.RecommendedOptions.Etcd.StorageConfig
	if storage != nil {
		*etcd = *storage
	}
	if err := parsed.Parse(customFlags); err != nil {
		return result, err
	}
	if err := features.Apply(test); err != nil {
		return result, err
	}
	dir, err := os.MkdirTemp("", "kubernetes-suites-")
	if err != nil {
		return result, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	flags, err := apiserver.BaseFlags(dir, etcd)
	if err != nil {
		return result, err
	}
	for _, name := range passed {
		if flag := parsed.Lookup(name); flag != nil && flag.Changed {
			value := flag.Value.String()
			if list, ok := flag.Value.(pflag.SliceValue); ok {
				value = strings.Join(list.GetSlice(), ",")
			}
			flags = append(flags, "--"+name+"="+value)
		}
	}
	server, err := apiserver.Start(apiserver.Options{Test: named.Name(), Dir: dir, Flags: flags})
	if err != nil {
		return result, err
	}
	config := server.Config()
	config.ContentType = ""
	return TestServer{ClientConfig: config, ServerOpts: opts, TmpDir: dir, TearDownFn: func() {
		server.Stop()
		os.RemoveAll(dir)
	}}, nil
}

func StartTestServerOrDie(t Logger, instance *TestServerInstanceOptions, flags []string, storage *storagebackend.Config) *TestServer {
	server, err := StartTestServer(t, instance, flags, storage)
	if err != nil {
		t.Fatalf("failed to launch server: %v", err)
	}
	return &server
}
