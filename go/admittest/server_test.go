package admittest

import (
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// start starts a server, or skips the test if there is no binary.
func start(t *testing.T, args ...string) *Server {
	t.Helper()
	if _, err := Binary(); err != nil {
		t.Skipf("skipped: %v", err)
	}
	return Start(t, args...)
}

// handler adds a label to Pods without it at /mutate, and denies every object at /validate.
func handler(t *testing.T) http.Handler {
	respond := func(w http.ResponseWriter, r *http.Request, response map[string]any) {
		var review struct{ Request struct{ UID string } }
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		response["uid"] = review.Request.UID
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
		})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/mutate", func(w http.ResponseWriter, r *http.Request) {
		patch := []byte(`[{"op": "add", "path": "/metadata/labels", "value": {"team": "unknown"}}]`)
		respond(w, r, map[string]any{"allowed": true, "patchType": "JSONPatch", "patch": patch})
	})
	mux.HandleFunc("/validate", func(w http.ResponseWriter, r *http.Request) {
		respond(w, r, map[string]any{"allowed": false, "status": map[string]any{"message": "not today"}})
	})
	return mux
}

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: web, image: nginx}]}
`

func TestWebhookChangesThePod(t *testing.T) {
	server := start(t)
	server.Webhook("testdata/webhook.yaml", handler(t))
	created, err := server.Create("/api/v1/namespaces/default/pods", pod)
	if err != nil {
		t.Fatal(err)
	}
	labels, _ := created["metadata"].(map[string]any)["labels"].(map[string]any)
	if labels["team"] != "unknown" {
		t.Errorf("the labels are %v", labels)
	}
	calls := server.Calls()
	if len(calls) != 1 || calls[0].Webhook != "team.example.com" || calls[0].Outcome != "allowed" || !calls[0].Changed {
		t.Fatalf("the calls are %+v", calls)
	}
	change := Change{Path: "metadata.labels", To: map[string]any{"team": "unknown"}}
	if got := calls[0].Changes; len(got) != 1 || got[0].Path != change.Path {
		t.Errorf("the changes are %+v", got)
	}
	if name := calls[0].Object()["metadata"].(map[string]any)["name"]; name != "web" {
		t.Errorf("the webhook received an object with the name %v", name)
	}
}

func TestDenialHasTheMessageOfTheServer(t *testing.T) {
	server := start(t)
	server.Webhook("testdata/webhook.yaml", handler(t))
	_, err := server.Create("/api/v1/namespaces/default/configmaps", `{"metadata": {"name": "settings"}}`)
	var status *StatusError
	if !errors.As(err, &status) || status.Code != http.StatusBadRequest {
		t.Fatalf("the error is %#v", err)
	}
	if want := `admission webhook "deny.example.com" denied the request: not today`; status.Message != want {
		t.Errorf("the message is %q", status.Message)
	}
	requests := server.Requests()
	last := requests[len(requests)-1]
	if last.Decision.Allowed || last.Request.Resource.Resource != "configmaps" || last.Request.Name != "settings" {
		t.Errorf("the last request is %+v", last)
	}
}

func TestWebhookIsReinvokedAfterAFake(t *testing.T) {
	server := start(t)
	server.Webhook("testdata/webhook.yaml", handler(t))
	server.Fakes("testdata/fakes.yaml")
	if _, err := server.Create("/api/v1/namespaces/default/pods", pod); err != nil {
		t.Fatal(err)
	}
	calls := server.Calls()
	if len(calls) != 3 {
		t.Fatalf("the calls are %+v", calls)
	}
	again := calls[2]
	if again.Webhook != "team.example.com" || again.Round != 2 || again.Changed {
		t.Errorf("the last call is %+v", again)
	}
	containers := again.Object()["spec"].(map[string]any)["containers"].([]any)
	if len(containers) != 2 {
		t.Errorf("the reinvoked webhook received %v", containers)
	}
}

func TestServerStopsWithItsTest(t *testing.T) {
	var server *Server
	t.Run("inner", func(t *testing.T) { server = start(t) })
	if server == nil {
		t.Skip("skipped: no server was started")
	}
	server.t = t
	if _, err := server.Create("/api/v1/namespaces/default/pods", pod); err == nil {
		t.Error("the server still responds")
	}
}

func TestFlagsArePassedToTheServer(t *testing.T) {
	server := start(t, "--enable-admission-plugins", "AlwaysPullImages")
	created, err := server.Create("/api/v1/namespaces/default/pods", strings.Replace(pod, "nginx", "nginx:1", 1))
	if err != nil {
		t.Fatal(err)
	}
	container := created["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	if container["imagePullPolicy"] != "Always" {
		t.Errorf("the pull policy is %v", container["imagePullPolicy"])
	}
}

func TestKubeconfigWorksWithKubectl(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("skipped: no kubectl on PATH")
	}
	server := start(t)
	output, err := exec.Command(kubectl, "--kubeconfig", server.Kubeconfig, "get", "namespaces", "-o", "name").CombinedOutput()
	if err != nil || !strings.Contains(string(output), "namespace/default\n") {
		t.Errorf("kubectl prints %s (%v)", output, err)
	}
}
