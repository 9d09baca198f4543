// Package mirror is a mutating webhook that pulls all images of a Pod from a mirror.
package mirror

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const registry = "mirror.example.com/"

// Handler returns the HTTP handler of the webhook.
func Handler() (http.Handler, error) {
	return admission.StandaloneWebhook(&admission.Webhook{Handler: admission.HandlerFunc(handle)}, admission.StandaloneOptions{})
}

func handle(_ context.Context, request admission.Request) admission.Response {
	var pod corev1.Pod
	if err := json.Unmarshal(request.Object.Raw, &pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	for i := range pod.Spec.Containers {
		if image := &pod.Spec.Containers[i].Image; !strings.HasPrefix(*image, registry) {
			*image = registry + *image
		}
	}
	mutated, err := json.Marshal(pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, mutated)
}
