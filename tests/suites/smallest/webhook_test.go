// Package smallest is the smallest suite of an operator: envtest, a webhook, and a client.
package smallest

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const denial = "no settings today"

func denying() *admissionregistration.ValidatingWebhookConfiguration {
	return &admissionregistration.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "deny"},
		Webhooks: []admissionregistration.ValidatingWebhook{{
			Name: "deny.example.com",
			Rules: []admissionregistration.RuleWithOperations{{
				Operations: []admissionregistration.OperationType{admissionregistration.Create},
				Rule: admissionregistration.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
				},
			}},
			ClientConfig: admissionregistration.WebhookClientConfig{
				Service: &admissionregistration.ServiceReference{Namespace: "default", Name: "deny", Path: ptr.To("/deny")},
			},
			SideEffects:             ptr.To(admissionregistration.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

func TestAWebhookIsCalled(t *testing.T) {
	environment := &envtest.Environment{
		WebhookInstallOptions: envtest.WebhookInstallOptions{
			ValidatingWebhooks: []*admissionregistration.ValidatingWebhookConfiguration{denying()},
		},
	}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		begun := time.Now()
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
		t.Logf("stopped in %v", time.Since(begun))
	}()

	options := environment.WebhookInstallOptions
	server := webhook.NewServer(webhook.Options{
		Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
	})
	server.Register("/deny", &webhook.Admission{Handler: admission.HandlerFunc(
		func(_ context.Context, request admission.Request) admission.Response {
			if request.Operation != admissionv1.Create {
				return admission.Errored(http.StatusBadRequest, nil)
			}
			return admission.Denied(denial)
		},
	)})
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Start(ctx) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()

	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	// Until the webhook listens, calls of it fail in another way.
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, settings.DeepCopy())
		if err == nil {
			return false, nil
		}
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), denial), nil
	})
	if err != nil {
		t.Fatalf("the webhook never denied: %v", err)
	}

	user, err := environment.AddUser(envtest.User{Name: "joe", Groups: []string{"visitors"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	visitor, err := client.New(user.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := visitor.List(ctx, &corev1.SecretList{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "joe"`) {
		t.Fatalf("a visitor listed secrets, or was refused as somebody else: %v", err)
	}
	// kube-apiserver makes it after it is ready.
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kubernetes"}, &corev1.Service{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Errorf("the Service kubernetes: %v", err)
	}
}
