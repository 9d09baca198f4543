package admittest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"
)

const stopTimeout = 10 * time.Second

// Server is a running API server.
type Server struct {
	// Kubeconfig is the path of a kubeconfig for a cluster administrator.
	Kubeconfig string
	// URL is the address of the server, such as https://127.0.0.1:6443.
	URL string
	// Token is the bearer token of a cluster administrator.
	Token string
	// CA contains the PEM certificates that verify the server.
	CA []byte

	t       testing.TB
	client  *http.Client
	binary  string
	records string
}

// Start starts an API server and stops it when the test ends. args are additional flags of admit serve, such as
// --with-controllers.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	binary, err := Binary()
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	s := &Server{
		Kubeconfig: filepath.Join(directory, "kubeconfig"),
		t:          t,
		binary:     binary,
		records:    filepath.Join(directory, "records"),
	}
	stdout := s.run(append([]string{"serve", "--kubeconfig-out", s.Kubeconfig, "--record", s.records}, args...)...)
	// The kubeconfig is complete when the second line, with its path, is printed.
	lines := bufio.NewReader(stdout)
	for range 2 {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatalf("start admit serve: it stopped with an error, which the test log contains (%v)", err)
		}
	}
	go io.Copy(io.Discard, lines)
	if err := s.readKubeconfig(); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	s.client = &http.Client{Transport: transport}
	return s
}

// run starts admit, returns its standard output, and stops it when the test ends. If the test fails, its standard error
// is logged.
func (s *Server) run(args ...string) io.Reader {
	s.t.Helper()
	command := exec.Command(s.binary, args...)
	log := &bytes.Buffer{}
	command.Stderr = log
	stdout, stdoutWriter, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	command.Stdout = stdoutWriter
	err = command.Start()
	stdoutWriter.Close()
	if err != nil {
		stdout.Close()
		s.t.Fatalf("start admit %s: %v", args[0], err)
	}
	s.t.Cleanup(func() {
		command.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(stopTimeout, func() { command.Process.Kill() })
		command.Wait()
		kill.Stop()
		stdout.Close()
		if s.t.Failed() && log.String() != "" {
			s.t.Logf("log of admit %s:\n%s", args[0], log)
		}
	})
	return stdout
}

var (
	serverField    = regexp.MustCompile(`(?m)^ *server: (\S+)$`)
	tokenField     = regexp.MustCompile(`(?m)^ *token: (\S+)$`)
	authorityField = regexp.MustCompile(`(?m)^ *certificate-authority-data: (\S+)$`)
)

// readKubeconfig reads the fields of a kubeconfig in the form in which admit serve writes it.
func (s *Server) readKubeconfig() error {
	content, err := os.ReadFile(s.Kubeconfig)
	if err != nil {
		return err
	}
	var missing error
	field := func(pattern *regexp.Regexp) string {
		found := pattern.FindSubmatch(content)
		if found == nil {
			missing = errors.Join(missing, fmt.Errorf("%s: missing %s", s.Kubeconfig, pattern))
			return ""
		}
		return string(found[1])
	}
	s.URL, s.Token = field(serverField), field(tokenField)
	authority := field(authorityField)
	if missing != nil {
		return missing
	}
	s.CA, err = base64.StdEncoding.DecodeString(authority)
	return err
}
