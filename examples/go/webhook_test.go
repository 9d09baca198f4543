package mirror

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admit-dev/admit/go/admittest"
	"github.com/admit-dev/admit/go/admittest/rest"
)

func TestSidecarIsPulledFromTheMirror(t *testing.T) {
	server := admittest.Start(t)
	server.Webhook("webhook.yaml", must(Handler()))
	server.Fakes("fakes.yaml")
	kube := must(client.New(rest.Config(server), client.Options{}))
	check(t, kube.Create(t.Context(), pod.DeepCopy()))
	again := server.Calls()[2] // after the webhook and the injector
	equal(t, again.Webhook, "mirror.example.com")
	equal(t, again.Round, 2)
	equal(t, image(again.Object(), 1), "envoy")
	equal(t, again.Changes, []admittest.Change{{Path: "spec.containers[1].image", From: "envoy", To: "mirror.example.com/envoy"}})
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

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func equal[T any](t *testing.T, actual, expected T) {
	t.Helper()
	if !reflect.DeepEqual(actual, expected) {
		t.Fatalf("got %v, expected %v", actual, expected)
	}
}

// image returns the image of a container in a Pod.
func image(pod map[string]any, index int) string {
	var decoded corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(pod, &decoded); err != nil {
		panic(err)
	}
	return decoded.Spec.Containers[index].Image
}
