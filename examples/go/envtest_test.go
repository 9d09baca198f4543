package mirror

import (
	"os"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The same webhook in a suite that starts envtest, which runs on admit or on the real binaries.
func TestImageIsPulledFromTheMirrorOnEnvtest(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set")
	}
	environment := &envtest.Environment{
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{"webhook.yaml"}},
	}
	config, err := environment.Start()
	check(t, err)
	t.Cleanup(func() { check(t, environment.Stop()) })

	options := environment.WebhookInstallOptions
	server := webhook.NewServer(webhook.Options{
		Host:    options.LocalServingHost,
		Port:    options.LocalServingPort,
		CertDir: options.LocalServingCertDir,
	})
	server.Register("/mutate", &admission.Webhook{Handler: admission.HandlerFunc(handle)})
	go server.Start(t.Context())
	for deadline := time.Now().Add(time.Minute); server.StartedChecker()(nil) != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the webhook server did not start")
		}
	}

	kube, err := client.New(config, client.Options{})
	check(t, err)
	// kube-apiserver calls a webhook only some time after its configuration was created; admit calls it at once.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		created := pod.DeepCopy()
		check(t, kube.Create(t.Context(), created, client.DryRunAll))
		if created.Spec.Containers[0].Image == "mirror.example.com/nginx" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the image is %s", created.Spec.Containers[0].Image)
		}
	}
}
