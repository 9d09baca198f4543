package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/generic"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// small makes about 1 KiB of JSON, as in benches/src/dispatch.rs.
const small = 700

// entry is what of a webhook differs between benchmarks.
type entry struct {
	path, resource string
	conditions     []admissionregistration.MatchCondition
}

var (
	allowing = entry{path: "/allow", resource: "pods"}
	patching = entry{path: "/patch", resource: "pods"}
	other    = entry{path: "/allow", resource: "services"}
)

func dispatch(given arguments) error {
	// The garbage collector has to share the core of what is measured.
	runtime.GOMAXPROCS(1)
	server, err := startWebhook(given.benches, "")
	if err != nil {
		return err
	}
	defer server.stop()
	m := &meter{time: given.time, results: map[string]measured{}}
	conditional := allowing
	conditional.conditions = []admissionregistration.MatchCondition{
		{Name: "a", Expression: "request.userInfo.username != 'nobody'"},
		{Name: "b", Expression: "object.spec.containers.all(c, c.image.startsWith('other'))"},
	}
	benchmarks := []struct {
		name       string
		validating bool
		bytes      int
		webhooks   []entry
		atOnce     int
	}{
		{"dispatch/no match/1", false, small, []entry{other}, 1},
		{"dispatch/no match/10", false, small, repeat(other, 10), 1},
		{"dispatch/no match/100", false, small, repeat(other, 100), 1},
		{"dispatch/no match/1000", false, small, repeat(other, 1000), 1},
		{"dispatch/1 match/1000", false, small, append(repeat(other, 999), allowing), 1},
		{"dispatch/1000 match/1000", false, small, repeat(allowing, 1000), 1},
		{"dispatch/allow/1 KiB", false, small, []entry{allowing}, 1},
		{"dispatch/patch/1 KiB", false, small, []entry{patching}, 1},
		{"dispatch/allow/32 KiB", false, 32 << 10, []entry{allowing}, 1},
		{"dispatch/patch/32 KiB", false, 32 << 10, []entry{patching}, 1},
		{"dispatch/allow/1 MiB", false, 1 << 20, []entry{allowing}, 1},
		{"dispatch/patch/1 MiB", false, 1 << 20, []entry{patching}, 1},
		{"dispatch/conditions false", false, small, []entry{conditional}, 1},
		{"dispatch/validating/1/1 KiB", true, small, []entry{allowing}, 1},
		{"dispatch/validating/10/1 KiB", true, small, repeat(allowing, 10), 1},
		{"dispatch/validating/1/1 MiB", true, 1 << 20, []entry{allowing}, 1},
		{"dispatch/validating/10/1 MiB", true, 1 << 20, repeat(allowing, 10), 1},
		{"dispatch/allow, 4 at once", false, small, []entry{allowing}, 4},
		{"dispatch/allow, 16 at once", false, small, []entry{allowing}, 16},
		{"dispatch/allow, 64 at once", false, small, []entry{allowing}, 64},
	}
	for _, bench := range benchmarks {
		if !strings.Contains(bench.name, given.names) {
			continue
		}
		call, stop, err := plugin(server, bench.webhooks, bench.validating)
		if err != nil {
			return fmt.Errorf("%s: %w", bench.name, err)
		}
		pod := pod(bench.bytes)
		prepare := func() []admission.Attributes {
			several := make([]admission.Attributes, bench.atOnce)
			for index := range several {
				several[index] = create(pod)
			}
			return several
		}
		err = measure(m, bench.name, bench.atOnce, prepare, func(several []admission.Attributes) error {
			if len(several) == 1 {
				return call(several[0])
			}
			var group sync.WaitGroup
			failed := make([]error, len(several))
			for index, attributes := range several {
				group.Go(func() { failed[index] = call(attributes) })
			}
			group.Wait()
			for _, err := range failed {
				if err != nil {
					return err
				}
			}
			return nil
		})
		stop()
		if err != nil {
			return err
		}
	}
	return writeJSON(given.json, m.results)
}

func repeat(one entry, count int) []entry {
	all := make([]entry, count)
	for index := range all {
		all[index] = one
	}
	return all
}

// plugin is upstream's, initialized as an API server does it, with these webhooks from its informers.
func plugin(server *webhook, entries []entry, validates bool) (func(admission.Attributes) error, func(), error) {
	ctx, stop := context.WithCancel(context.Background())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "default", Labels: map[string]string{"kubernetes.io/metadata.name": "default"},
	}}
	var stored kruntime.Object = mutatingConfiguration(server, entries)
	if validates {
		stored = validatingConfiguration(server, entries)
	}
	client := fake.NewClientset(namespace, stored)
	factory := informers.NewSharedInformerFactory(client, 0)
	scheme := kruntime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		stop()
		return nil, nil, err
	}
	interfaces := admission.NewObjectInterfacesFromScheme(scheme)

	var hook *generic.Webhook
	var call func(admission.Attributes) error
	if validates {
		plugin, err := validating.NewValidatingAdmissionWebhook(nil)
		if err != nil {
			stop()
			return nil, nil, err
		}
		hook = plugin.Webhook
		call = func(attributes admission.Attributes) error { return plugin.Validate(ctx, attributes, interfaces) }
	} else {
		plugin, err := mutating.NewMutatingWebhook(nil)
		if err != nil {
			stop()
			return nil, nil, err
		}
		hook = plugin.Webhook
		call = func(attributes admission.Attributes) error { return plugin.Admit(ctx, attributes, interfaces) }
	}
	hook.SetExternalKubeClientSet(client)
	hook.SetExternalKubeInformerFactory(factory)
	if err := hook.ValidateInitialization(); err != nil {
		stop()
		return nil, nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	ready := func(context.Context) (bool, error) { return hook.WaitForReady(), nil }
	if err := wait.PollUntilContextTimeout(ctx, time.Millisecond, 10*time.Second, true, ready); err != nil {
		stop()
		return nil, nil, err
	}
	return call, stop, nil
}

func mutatingConfiguration(server *webhook, entries []entry) *admissionregistration.MutatingWebhookConfiguration {
	all := make([]admissionregistration.MutatingWebhook, len(entries))
	for index, entry := range entries {
		common := validatingWebhook(server, index, entry)
		policy := admissionregistration.NeverReinvocationPolicy
		all[index] = admissionregistration.MutatingWebhook{
			Name: common.Name, ClientConfig: common.ClientConfig, Rules: common.Rules,
			FailurePolicy: common.FailurePolicy, MatchPolicy: common.MatchPolicy,
			NamespaceSelector: common.NamespaceSelector, ObjectSelector: common.ObjectSelector,
			SideEffects: common.SideEffects, TimeoutSeconds: common.TimeoutSeconds,
			AdmissionReviewVersions: common.AdmissionReviewVersions, MatchConditions: common.MatchConditions,
			ReinvocationPolicy: &policy,
		}
	}
	return &admissionregistration.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "benches"}, Webhooks: all}
}

func validatingConfiguration(server *webhook, entries []entry) *admissionregistration.ValidatingWebhookConfiguration {
	all := make([]admissionregistration.ValidatingWebhook, len(entries))
	for index, entry := range entries {
		all[index] = validatingWebhook(server, index, entry)
	}
	return &admissionregistration.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "benches"}, Webhooks: all}
}

// validatingWebhook has the defaults that an API server would set.
func validatingWebhook(server *webhook, index int, entry entry) admissionregistration.ValidatingWebhook {
	url := "https://" + server.Address + entry.path
	fail, equivalent := admissionregistration.Fail, admissionregistration.Equivalent
	none, scope, seconds := admissionregistration.SideEffectClassNone, admissionregistration.AllScopes, int32(10)
	return admissionregistration.ValidatingWebhook{
		Name:         fmt.Sprintf("w%d.example.com", index),
		ClientConfig: admissionregistration.WebhookClientConfig{URL: &url, CABundle: []byte(server.CABundle)},
		Rules: []admissionregistration.RuleWithOperations{{
			Operations: []admissionregistration.OperationType{"CREATE", "UPDATE"},
			Rule: admissionregistration.Rule{
				APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{entry.resource}, Scope: &scope,
			},
		}},
		FailurePolicy: &fail, MatchPolicy: &equivalent, SideEffects: &none, TimeoutSeconds: &seconds,
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "skip", Operator: metav1.LabelSelectorOpDoesNotExist},
		}},
		ObjectSelector:          &metav1.LabelSelector{},
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions:         entry.conditions,
	}
}

// pod of about these bytes of JSON, as in benches/src/fixtures.rs.
func pod(bytes int) *corev1.Pod {
	annotations := map[string]string{}
	for index := range bytes / 90 {
		annotations[fmt.Sprintf("example.com/a%08d", index)] = strings.Repeat("x", 64)
	}
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.com/web:1"}}},
	}
}

// create is the request that creates a copy of the Pod.
func create(pod *corev1.Pod) admission.Attributes {
	admin := &user.DefaultInfo{Name: "admin", Groups: []string{"system:masters", "system:authenticated"}}
	return admission.NewAttributesRecord(
		pod.DeepCopy(), nil, corev1.SchemeGroupVersion.WithKind("Pod"), "default", "web",
		corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, &metav1.CreateOptions{}, false, admin,
	)
}
