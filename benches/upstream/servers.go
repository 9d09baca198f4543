package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// server is an API server in processes of its own, which stop ends.
type server struct {
	config    *rest.Config
	processes []*exec.Cmd
	folder    string
}

// usage of all processes of the server.
func (s *server) usage() (time.Duration, uint64, error) {
	var cpu time.Duration
	var resident uint64
	for _, process := range s.processes {
		used, bytes, err := usage(process.Process.Pid)
		if err != nil {
			return 0, 0, err
		}
		cpu, resident = cpu+used, resident+bytes
	}
	return cpu, resident, nil
}

func (s *server) stop() {
	for index := len(s.processes) - 1; index >= 0; index-- {
		_ = s.processes[index].Process.Kill()
		_ = s.processes[index].Wait()
	}
	_ = os.RemoveAll(s.folder)
}

// start runs a program on the core, with its output in a file of the folder.
func (s *server) start(cpu, program string, given ...string) error {
	log, err := os.Create(filepath.Join(s.folder, filepath.Base(program)+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	command := pinned(cpu, program, given...)
	command.Stdout, command.Stderr, command.Dir = log, log, s.folder
	if err := command.Start(); err != nil {
		return err
	}
	s.processes = append(s.processes, command)
	return nil
}

// startServer starts `kube` or `admit` and waits until it is ready.
func startServer(given arguments) (*server, error) {
	folder, err := os.MkdirTemp("", "benches")
	if err != nil {
		return nil, err
	}
	started := &server{folder: folder}
	switch given.server {
	case "kube":
		err = started.startKube(given)
	case "admit":
		err = started.startAdmit(given)
	default:
		err = fmt.Errorf("no server is called %q: kube or admit", given.server)
	}
	if err == nil {
		err = started.waitUntilReady()
	}
	if err != nil {
		logs, _ := filepath.Glob(filepath.Join(folder, "*.log"))
		for _, log := range logs {
			text, _ := os.ReadFile(log)
			err = fmt.Errorf("%w\n%s ends with:\n%s", err, filepath.Base(log), text[max(0, len(text)-2000):])
		}
		started.stop()
		return nil, err
	}
	return started, nil
}

func (s *server) startAdmit(given arguments) error {
	kubeconfig := filepath.Join(s.folder, "kubeconfig")
	program, err := filepath.Abs(given.admit)
	if err != nil {
		return err
	}
	if err := s.start(given.cpu, program, "serve", "--kubeconfig-out", kubeconfig); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(context.Background(), 5*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if errors.Is(err, os.ErrNotExist) {
				return false, nil
			}
			s.config = config
			return err == nil, err
		})
}

func (s *server) startKube(given arguments) error {
	if given.assets == "" {
		return errors.New("KUBEBUILDER_ASSETS does not name the folder of etcd and kube-apiserver")
	}
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	etcd, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	err = s.start(given.cpu, filepath.Join(given.assets, "etcd"),
		"--data-dir="+filepath.Join(s.folder, "etcd"), "--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--unsafe-no-fsync")
	if err != nil {
		return err
	}
	key, tokens := filepath.Join(s.folder, "accounts.key"), filepath.Join(s.folder, "tokens.csv")
	if err := writeKey(key); err != nil {
		return err
	}
	token := rand.Text()
	if err := os.WriteFile(tokens, []byte(token+",admin,admin,system:masters\n"), 0o600); err != nil {
		return err
	}
	s.config = &rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", ports[2]), BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}
	return s.start(given.cpu, filepath.Join(given.assets, "kube-apiserver"),
		"--etcd-servers="+etcd, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", fmt.Sprintf("--secure-port=%d", ports[2]),
		"--cert-dir="+filepath.Join(s.folder, "certs"), "--service-account-key-file="+key,
		"--service-account-signing-key-file="+key, "--service-account-issuer=https://kubernetes.default.svc",
		"--token-auth-file="+tokens, "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24")
}

// freePorts were free a moment ago.
func freePorts(count int) ([]int, error) {
	ports := make([]int, count)
	for index := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		ports[index] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// writeKey writes the key of the service accounts' tokens, which are not used.
func writeKey(file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text}), 0o600)
}

func (s *server) waitUntilReady() error {
	client, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, 2*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			_, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
			return err == nil, nil
		})
}
