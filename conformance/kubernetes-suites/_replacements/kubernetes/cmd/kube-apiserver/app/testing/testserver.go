// Package testing replaces the package of the same path in Kubernetes. Its StartTestServer runs the API server in its own
// process instead of in the process of the test.
package testing

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"admit.dev/conformance/kubernetes-suites/apiserver"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storageversion"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/test/e2e/invariants/metrics"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// The options of several servers configure the log of one process.
func init() { logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged }

type TearDownFunc func()

type ProxyCA struct {
	ProxySigningCert *x509.Certificate
	ProxySigningKey  *rsa.PrivateKey
}

type TestServerInstanceOptions struct {
	SkipHealthzCheck       bool
	DisableInvariantChecks bool
	EnableCertAuth         bool
	StorageVersionWrapFunc func(storageversion.Manager) storageversion.Manager
	ProxyCA                *ProxyCA
	BinaryVersion          string
	RequestTimeout         time.Duration
}

type TestServer struct {
	ClientConfig      *restclient.Config
	ServerOpts        *options.ServerRunOptions
	TearDownFn        TearDownFunc
	TmpDir            string
	EtcdClient        *clientv3.Client
	EtcdStoragePrefix string
}

type Logger interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Cleanup(func())
}

func NewDefaultTestServerOptions() *TestServerInstanceOptions {
	return &TestServerInstanceOptions{EnableCertAuth: true}
}

// StartTestServer starts a server with the flags of the test.
func StartTestServer(t ktesting.TB, instance *TestServerInstanceOptions, customFlags []string, storage *storagebackend.Config) (result TestServer, err error) {
	if instance == nil {
		instance = NewDefaultTestServerOptions()
	}
	if instance.StorageVersionWrapFunc != nil || instance.ProxyCA != nil || instance.BinaryVersion != "" {
		t.Skip("in process only: the options of the test server")
	}
	customFlags = apiserver.Supported(customFlags)
	features, err := apiserver.NewFeatures()
	if err != nil {
		return result, err
	}
	opts := options.NewServerRunOptions()
	opts.GenericServerRunOptions.ComponentGlobalsRegistry = features.Registry
	opts.Etcd.StorageConfig = *storage
	parsed := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range opts.Flags().FlagSets {
		parsed.AddFlagSet(set)
	}
	if err := parsed.Parse(customFlags); err != nil {
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
	flags, err := apiserver.BaseFlags(dir, storage)
	if err != nil {
		return result, err
	}
	if instance.RequestTimeout > 0 {
		flags = append(flags, fmt.Sprintf("--request-timeout=%v", instance.RequestTimeout))
	}
	if err := features.Apply(t); err != nil {
		return result, err
	}
	server, err := apiserver.Start(apiserver.Options{
		Test:        t.Name(),
		Dir:         dir,
		TokenFile:   opts.Authentication.TokenFile.TokenFile,
		Flags:       append(apiserver.Without(flags, parsed), customFlags...),
		SkipHealthz: instance.SkipHealthzCheck,
	})
	if err != nil {
		return result, err
	}
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		server.Stop()
		return result, err
	}
	etcd, _, err := GetEtcdClients(storage.Transport)
	if err != nil {
		server.Stop()
		return result, err
	}
	if apiserver.IsAdmit() {
		etcd.KV = apiserver.WithoutStorage(etcd.KV, client.RESTClient())
	}
	opts.SecureServing.BindPort = server.Port
	opts.SecureServing.ServerCert.CertDirectory = dir
	opts.SecureServing.ServerCert.CertKey.CertFile = server.Certificate()
	opts.SecureServing.ServerCert.CertKey.KeyFile = strings.TrimSuffix(server.Certificate(), ".crt") + ".key"
	if opts.GenericServerRunOptions.AdvertiseAddress == nil {
		opts.GenericServerRunOptions.AdvertiseAddress = net.IPv4(127, 0, 0, 1)
	}
	result = TestServer{ClientConfig: server.Config(), ServerOpts: opts, TmpDir: dir, EtcdClient: etcd, EtcdStoragePrefix: storage.Prefix}
	result.ClientConfig.QPS, result.ClientConfig.Burst = 1000, 10000
	result.TearDownFn = func() {
		if !instance.DisableInvariantChecks {
			if err := metrics.CheckMetricInvariants(context.Background(), client, false); err != nil {
				t.Errorf("Invariant check failed: %v", err)
			}
		}
		_ = etcd.Close()
		server.Stop()
		os.RemoveAll(dir)
	}
	return result, nil
}

func StartTestServerOrDie(t testing.TB, instance *TestServerInstanceOptions, flags []string, storage *storagebackend.Config) *TestServer {
	server, err := StartTestServer(t, instance, flags, storage)
	if err != nil {
		t.Fatalf("failed to launch server: %v", err)
	}
	return &server
}

// GetEtcdClients returns clients of the etcd of the tests.
func GetEtcdClients(config storagebackend.TransportConfig) (*clientv3.Client, clientv3.KV, error) {
	settings := clientv3.Config{Endpoints: config.ServerList, DialTimeout: 20 * time.Second}
	if config.CertFile+config.KeyFile+config.TrustedCAFile != "" {
		files := transport.TLSInfo{CertFile: config.CertFile, KeyFile: config.KeyFile, TrustedCAFile: config.TrustedCAFile}
		var err error
		if settings.TLS, err = files.ClientConfig(); err != nil {
			return nil, nil, err
		}
	}
	client, err := clientv3.New(settings)
	if err != nil {
		return nil, nil, err
	}
	return client, clientv3.NewKV(client), nil
}
