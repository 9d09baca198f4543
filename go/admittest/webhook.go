package admittest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
)

var (
	documentSeparator = regexp.MustCompile(`(?m)^---.*$`)
	// A CA certificate or a placeholder. setAddress replaces it, and the server rejects a placeholder.
	caBundle          = regexp.MustCompile(`\bcaBundle: *(\$\{[^}]*\}|"[^"]*"|'[^']*'|[^\s,}|>"'][^\s,}]*)`)
	configurationKind = regexp.MustCompile(`(?m)^kind: *["']?((?:Mutating|Validating)WebhookConfiguration)\b`)
)

// collection returns the path of the webhook configurations of a kind.
func collection(kind string) string {
	return "/apis/admissionregistration.k8s.io/v1/" + strings.ToLower(kind) + "s"
}

// Webhook serves handler over TLS until the test ends, and registers the webhook configurations in the manifest (a YAML
// file) with its URL. The paths in the manifest stay as they are.
func (s *Server) Webhook(manifest string, handler http.Handler) *httptest.Server {
	s.t.Helper()
	webhook := httptest.NewTLSServer(handler)
	s.t.Cleanup(webhook.Close)
	s.Register(manifest, webhook.URL, pem.EncodeToMemory(&pem.Block{
		Type:  "CERTIFICATE",
		Bytes: webhook.Certificate().Raw,
	}))
	return webhook
}

// Register registers the webhook configurations in the manifest (a YAML file) with the URL of a webhook server and the
// PEM certificates that verify it. The paths in the manifest stay as they are; objects of other kinds are ignored.
func (s *Server) Register(manifest, webhookURL string, ca []byte) {
	s.t.Helper()
	content, err := os.ReadFile(manifest)
	if err != nil {
		s.t.Fatal(err)
	}
	registered := 0
	for _, document := range documentSeparator.Split(string(content), -1) {
		kind := configurationKind.FindStringSubmatch(document)
		if kind == nil {
			continue
		}
		collection := collection(kind[1])
		// A dry run converts YAML to JSON.
		configuration, err := s.create(collection+"?dryRun=All", caBundle.ReplaceAll([]byte(document), []byte("caBundle: null")))
		if err != nil {
			s.t.Fatalf("register %s: %v", manifest, err)
		}
		if err := setAddress(configuration, webhookURL, ca); err != nil {
			s.t.Fatalf("register %s: %v", manifest, err)
		}
		body, err := json.Marshal(configuration)
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := s.create(collection, body); err != nil {
			s.t.Fatalf("register %s: %v", manifest, err)
		}
		registered++
	}
	if registered == 0 {
		s.t.Fatalf("register %s: it does not contain a webhook configuration", manifest)
	}
}

// setAddress replaces the address in each clientConfig and keeps its path.
func setAddress(configuration map[string]any, webhookURL string, ca []byte) error {
	webhooks, _ := configuration["webhooks"].([]any)
	for _, webhook := range webhooks {
		webhook := webhook.(map[string]any)
		client := webhook["clientConfig"].(map[string]any)
		path := ""
		if service, ok := client["service"].(map[string]any); ok {
			path, _ = service["path"].(string)
		} else if address, ok := client["url"].(string); ok {
			parsed, err := url.Parse(address)
			if err != nil {
				return err
			}
			path = parsed.Path
		}
		webhook["clientConfig"] = map[string]any{
			"url":      webhookURL + path,
			"caBundle": base64.StdEncoding.EncodeToString(ca),
		}
	}
	metadata := configuration["metadata"].(map[string]any)
	for _, field := range []string{"uid", "creationTimestamp", "generation", "managedFields"} {
		delete(metadata, field)
	}
	return nil
}

// Fakes starts the fakes in a file for admit fakes, and registers them. They stop when the test ends.
//
// By default, fakes are called only in namespaces with the label admit-fakes=enabled.
func (s *Server) Fakes(file string) {
	s.t.Helper()
	stdout := s.run("fakes", "-f", file, "--listen", "127.0.0.1:0", "-o", "json")
	var list struct{ Items []json.RawMessage }
	if err := json.NewDecoder(stdout).Decode(&list); err != nil {
		s.t.Fatalf("start the fakes in %s: they stopped with an error, which the test log contains (%v)", file, err)
	}
	go io.Copy(io.Discard, stdout)
	for _, item := range list.Items {
		var object struct{ Kind string }
		if err := json.Unmarshal(item, &object); err != nil {
			s.t.Fatal(err)
		}
		if _, err := s.create(collection(object.Kind), item); err != nil {
			s.t.Fatalf("register the fakes in %s: %v", file, err)
		}
	}
}

// StatusError is a response of the server that is not successful.
type StatusError struct {
	Code    int    // the HTTP status code
	Message string // the server's message, as kubectl shows it
}

func (e *StatusError) Error() string { return e.Message }

// Create creates the object in a manifest (YAML or JSON) in a collection, such as
// /api/v1/namespaces/default/pods, and returns it as the server stored it. If the server rejects it, the error is a
// [*StatusError].
func (s *Server) Create(collection, manifest string) (map[string]any, error) {
	return s.create(collection, []byte(manifest))
}

func (s *Server) create(path string, body []byte) (map[string]any, error) {
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	// Every JSON document is a YAML document.
	request.Header.Set("Content-Type", "application/yaml")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Authorization", "Bearer "+s.Token)
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var object map[string]any
	if err := json.NewDecoder(response.Body).Decode(&object); err != nil {
		return nil, fmt.Errorf("POST %s: %s: %w", path, response.Status, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		message, _ := object["message"].(string)
		return nil, &StatusError{Code: response.StatusCode, Message: message}
	}
	return object, nil
}
