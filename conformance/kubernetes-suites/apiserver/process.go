// Package apiserver runs the API server of a Kubernetes integration test in its own process: admit or kube-apiserver.
//
// These environment variables select the server:
//
//	SUITES_SERVER  path of the program
//	SUITES_ADMIT   not empty if the program is admit
//	SUITES_LOGS    directory for the flags and the output of each server
package apiserver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	startTimeout = 2 * time.Minute
	stopTimeout  = 15 * time.Second
)

// IsAdmit reports whether the tests run on admit.
func IsAdmit() bool { return os.Getenv("SUITES_ADMIT") != "" }

// Server is a running API server.
type Server struct {
	Port    int
	dir     string
	token   string
	log     string
	command *exec.Cmd
	exited  chan struct{}
}

// Options describe a server.
type Options struct {
	// Test is the name of the test.
	Test string
	// Dir is the directory for certificates and tokens.
	Dir string
	// TokenFile is the token file of the test, or empty.
	TokenFile string
	// Flags are the flags of the server. Start adds those that depend on the process.
	Flags []string
	// SkipHealthz returns before /healthz is ok.
	SkipHealthz bool
}

// Start starts a server, and waits until it is ready.
func Start(options Options) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	server := &Server{Port: port, dir: options.Dir, exited: make(chan struct{})}
	tokens, err := server.writeTokens(options.TokenFile)
	if err != nil {
		return nil, err
	}
	name := strings.NewReplacer("/", ".", " ", "_").Replace(options.Test)
	server.log = filepath.Join(os.Getenv("SUITES_LOGS"), fmt.Sprintf("%.120s-%d.log", name, port))
	log, err := os.Create(server.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	server.command = exec.Command(os.Getenv("SUITES_SERVER"), append(options.Flags,
		fmt.Sprintf("--secure-port=%d", port), "--bind-address=127.0.0.1", "--cert-dir="+options.Dir, "--token-auth-file="+tokens)...)
	server.command.Stdout, server.command.Stderr = log, log
	fmt.Fprintln(log, strings.Join(server.command.Args, "\n  "))
	if err := server.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = server.command.Wait()
		close(server.exited)
	}()
	if err := server.waitUntilReady(!options.SkipHealthz); err != nil {
		server.Stop()
		return nil, err
	}
	return server, nil
}

// Config returns the configuration of a client with the identity and the content type of the loopback client.
func (s *Server) Config() *rest.Config {
	certificate, _ := os.ReadFile(s.Certificate())
	return &rest.Config{
		Host:               fmt.Sprintf("https://127.0.0.1:%d", s.Port),
		BearerToken:        s.token,
		TLSClientConfig:    rest.TLSClientConfig{CAData: certificate},
		ContentConfig:      rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"},
		QPS:                -1,
		DisableCompression: true,
	}
}

// Certificate returns the path of the certificate that the server has generated.
func (s *Server) Certificate() string { return filepath.Join(s.dir, "apiserver.crt") }

// Stop stops the server, and waits until it has exited.
func (s *Server) Stop() {
	_ = s.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(stopTimeout):
		_ = s.command.Process.Kill()
		<-s.exited
	}
}

// writeTokens writes the token file: the loopback client's token and those of the test.
func (s *Server) writeTokens(more string) (path string, err error) {
	secret := make([]byte, 16)
	if _, err := rand.Read(secret); err != nil {
		return "", err
	}
	s.token = hex.EncodeToString(secret)
	content := fmt.Appendf(nil, "%s,system:apiserver,loopback,\"system:masters\"\n", s.token)
	if more != "" {
		tokens, err := os.ReadFile(more)
		if err != nil {
			return "", err
		}
		content = append(content, tokens...)
	}
	path = filepath.Join(s.dir, "suites-tokens.csv")
	return path, os.WriteFile(path, content, 0o600)
}

// waitUntilReady waits for /healthz and for the namespace default.
func (s *Server) waitUntilReady(healthz bool) error {
	deadline := time.After(startTimeout)
	for {
		select {
		case <-s.exited:
			return fmt.Errorf("the API server exited: %s", s.lastOutput())
		case <-deadline:
			return fmt.Errorf("the API server is not ready after %v: %s", startTimeout, s.lastOutput())
		case <-time.After(50 * time.Millisecond):
			if s.isReady(healthz) == nil {
				return nil
			}
		}
	}
}

func (s *Server) isReady(healthz bool) error {
	if _, err := os.Stat(s.Certificate()); err != nil {
		return err
	}
	config := s.Config()
	config.Timeout = 5 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if healthz {
		if err := client.Discovery().RESTClient().Get().AbsPath("/healthz").Do(ctx).Error(); err != nil {
			return err
		}
	}
	_, err = client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
	return err
}

func (s *Server) lastOutput() string {
	output, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(output[max(0, len(output)-4096):]))
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("the listener does not have a TCP address")
	}
	return address.Port, nil
}
