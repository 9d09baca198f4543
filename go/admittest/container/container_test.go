package container

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// start starts the image that ADMIT_IMAGE names, or skips the test.
func start(t *testing.T, options ...testcontainers.ContainerCustomizer) *Container {
	t.Helper()
	image := os.Getenv("ADMIT_IMAGE")
	if image == "" {
		t.Skip("skipped: ADMIT_IMAGE does not name an image of admit")
	}
	testcontainers.SkipIfProviderIsNotHealthy(t)
	if output, err := exec.Command("docker", "image", "inspect", image).CombinedOutput(); err != nil {
		t.Skipf("skipped: docker image inspect %s: %s", image, output)
	}
	container, err := Run(t.Context(), image, options...)
	if container != nil {
		testcontainers.CleanupContainer(t, container)
	}
	if err != nil {
		t.Fatal(err)
	}
	return container
}

// client is a client for the API server of a container.
type client struct {
	t             *testing.T
	server, token string
	http          *http.Client
}

func newClient(t *testing.T, c *Container) *client {
	t.Helper()
	kubeconfig, err := c.Kubeconfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	field := func(name string) string {
		found := regexp.MustCompile(`(?m)^ *` + name + `: (\S+)$`).FindSubmatch(kubeconfig)
		if found == nil {
			return ""
		}
		return string(found[1])
	}
	authority, err := base64.StdEncoding.DecodeString(field("certificate-authority-data"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: field("tls-server-name")}}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{t: t, server: field("server"), token: field("token"), http: &http.Client{Transport: transport}}
}

// create creates an object and returns the status code and the response.
func (c *client) create(path string, object any) (int, string) {
	c.t.Helper()
	body, err := json.Marshal(object)
	if err != nil {
		c.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.server+path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

type object = map[string]any

func configMap(name string) object {
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name}}
}

// webhook serves a handler over TLS on all interfaces, and returns its URL for the container and its authority.
func webhook(t *testing.T, handler http.Handler) (url string, authority []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		DNSNames:              []string{HostAddress},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Listener.Close()
	server.Listener, err = net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	return fmt.Sprintf("https://%s:%d/validate", HostAddress, port), authority
}

func TestWebhookOnTheHostDeniesAnObject(t *testing.T) {
	kube := newClient(t, start(t))
	url, authority := webhook(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct{ UID, Name string }
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		response := object{"uid": review.Request.UID, "allowed": review.Request.Name != "denied",
			"status": object{"message": "not today"}}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(object{
			"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
		})
	}))
	status, text := kube.create("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", object{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": object{"name": "w"},
		"webhooks": []object{{
			"name": "w.example.com", "sideEffects": "None", "admissionReviewVersions": []string{"v1"},
			"clientConfig": object{"url": url, "caBundle": authority},
			"rules": []object{{"operations": []string{"CREATE"}, "apiGroups": []string{""},
				"apiVersions": []string{"v1"}, "resources": []string{"configmaps"}}},
		}},
	})
	if status != http.StatusCreated {
		t.Fatalf("create the configuration: %d %s", status, text)
	}
	status, text = kube.create("/api/v1/namespaces/default/configmaps", configMap("allowed"))
	if status != http.StatusCreated {
		t.Errorf("create an object that the webhook allows: %d %s", status, text)
	}
	status, text = kube.create("/api/v1/namespaces/default/configmaps", configMap("denied"))
	if want := `admission webhook \"w.example.com\" denied the request: not today`; !strings.Contains(text, want) {
		t.Errorf("create an object that the webhook denies: %d %s, want %s", status, text, want)
	}
}

func TestArgumentsAreFlagsOfAdmitServe(t *testing.T) {
	kube := newClient(t, start(t, testcontainers.WithCmdArgs("--disable-admission-plugins=NamespaceLifecycle")))
	status, text := kube.create("/api/v1/namespaces/missing/configmaps", configMap("a"))
	if status != http.StatusCreated {
		t.Errorf("create an object in a namespace that does not exist: %d %s", status, text)
	}
}
