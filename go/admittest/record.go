package admittest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Request is a request that could change an object, with the webhook calls that it caused.
type Request struct {
	Recorded struct {
		Time    time.Time
		Verb    string // such as create, patch, or deletecollection
		AuditID string
	}
	Request struct {
		Operation   string // CREATE, UPDATE, DELETE, or CONNECT
		Kind        GroupVersionKind
		Resource    GroupVersionResource
		Subresource string
		Namespace   string
		Name        string
		DryRun      bool
		Object      map[string]any // as the client sent it
	}
	Decision struct {
		Allowed bool
		Code    int    // the HTTP status code
		Message string // what kubectl would print
	}
	Warnings         []string
	AuditAnnotations map[string]string
	Calls            []Call
	Object           map[string]any // as the server stored it, or when it was rejected
}

// GroupVersionKind is a kind of the Kubernetes API.
type GroupVersionKind struct{ Group, Version, Kind string }

// GroupVersionResource is a resource of the Kubernetes API.
type GroupVersionResource struct{ Group, Version, Resource string }

// Call is a call of a webhook.
type Call struct {
	Type          string // mutating or validating
	Configuration string // the name of the webhook configuration
	Webhook       string
	Round         int    // 1, or 2 for a reinvocation
	Outcome       string // allowed, denied, failedOpen, failedClosed, or refused
	Message       string // why the webhook did not allow the request
	Patch         []map[string]any
	Changed       bool // whether the patch changed the object
	Changes       []Change
	Warnings      []string
	HTTPStatus    int
	// Request is the request of the AdmissionReview as the webhook received it.
	Request map[string]any
}

// Change is a change of one field by a call.
type Change struct {
	Path     string // such as spec.containers[1]
	From, To any
}

// Object returns the object as the webhook received it, or nil for a deletion.
func (c Call) Object() map[string]any {
	object, _ := c.Request["object"].(map[string]any)
	return object
}

// Requests returns all requests that could have changed an object, in the order in which they ended. The registration
// of webhooks is among them.
func (s *Server) Requests() []Request {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.records, "*.jsonl"))
	if err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(files)
	var requests []Request
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		for line := range bytes.Lines(content) {
			if !bytes.HasSuffix(line, []byte("\n")) {
				break // The server is still writing it.
			}
			var request Request
			if err := json.Unmarshal(line, &request); err != nil {
				s.t.Fatalf("%s: %v", file, err)
			}
			requests = append(requests, request)
		}
	}
	return requests
}

// Calls returns the webhook calls of all requests, in the order in which they ended.
func (s *Server) Calls() []Call {
	s.t.Helper()
	var calls []Call
	for _, request := range s.Requests() {
		calls = append(calls, request.Calls...)
	}
	return calls
}
