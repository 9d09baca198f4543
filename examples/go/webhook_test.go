package mirror

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admit-dev/admit/go/admittest"
	"github.com/admit-dev/admit/go/admittest/rest"
)

func TestSidecarIsPulledFromTheMirror(t *testing.T) {
	server := admittest.Start(t)
	handler, err := Handler()
	check(t, err)
	server.Webhook("webhook.yaml", handler)
	server.Fakes("fakes.yaml")
	kube, err := client.New(rest.Config(server), client.Options{})
	check(t, err)
	check(t, kube.Create(t.Context(), pod.DeepCopy()))

	calls := server.Calls()
	if len(calls) != 3 || calls[2].Webhook != "mirror.example.com" || calls[2].Round != 2 {
		t.Fatalf("the webhook was not reinvoked after the injector: %+v", calls)
	}
	if change := calls[2].Changes[0]; change.From != "envoy" || change.To != "mirror.example.com/envoy" {
		t.Errorf("the image of the sidecar changes from %v to %v", change.From, change.To)
	}
}

var pod = &corev1.Pod{
	ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
	Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
