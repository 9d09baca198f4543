// Package mirror is a mutating webhook that makes Pods pull all images from a mirror.
package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
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
	// A patch computed from the re-encoded pod would remove fields that this version of corev1 does not know.
	var patch []jsonpatch.JsonPatchOperation
	for i, container := range pod.Spec.Containers {
		if !strings.HasPrefix(container.Image, registry) {
			path := fmt.Sprintf("/spec/containers/%d/image", i)
			patch = append(patch, jsonpatch.NewOperation("add", path, registry+container.Image))
		}
	}
	return admission.Patched("", patch...)
}
