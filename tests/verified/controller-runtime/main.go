// Webhooks as a project with controller-runtime writes them, without its manager, which would need a cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func main() {
	port := flag.Int("port", 9443, "where to listen on 127.0.0.1")
	certDir := flag.String("cert-dir", "", "folder with tls.crt and tls.key")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	scheme := clientgoscheme.Scheme
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: *port, CertDir: *certDir})
	server.Register("/inject", admission.WithDefaulter[*corev1.Pod](scheme, injector{}))
	server.Register("/tags", admission.WithValidator[*corev1.Pod](scheme, tags{}))
	server.Register("/protect", admission.WithValidator[*corev1.ConfigMap](scheme, protector{}))
	if err := server.Start(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// injector adds a sidecar to the Pods that ask for it, and a label by which they are found.
type injector struct{}

func (injector) Default(_ context.Context, pod *corev1.Pod) error {
	if pod.Annotations["proxy.example/inject"] != "true" {
		return nil
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels["proxy.example/injected"] = "true"
	isProxy := func(container corev1.Container) bool { return container.Name == "proxy" }
	if !slices.ContainsFunc(pod.Spec.Containers, isProxy) {
		proxy := corev1.Container{Name: "proxy", Image: "registry.example/proxy:1.4"}
		pod.Spec.Containers = append(pod.Spec.Containers, proxy)
	}
	return nil
}

// tags refuses images that may be another one tomorrow.
type tags struct{}

func (tags) ValidateCreate(_ context.Context, pod *corev1.Pod) (admission.Warnings, error) {
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if strings.HasSuffix(container.Image, ":latest") {
			return nil, fmt.Errorf("%s: the image needs a tag other than latest", container.Name)
		}
	}
	return nil, nil
}

func (tags) ValidateUpdate(context.Context, *corev1.Pod, *corev1.Pod) (admission.Warnings, error) {
	return nil, nil
}

func (tags) ValidateDelete(context.Context, *corev1.Pod) (admission.Warnings, error) {
	return nil, nil
}

// protector keeps the ConfigMaps that say so.
type protector struct{}

func (protector) ValidateCreate(context.Context, *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, nil
}

func (protector) ValidateUpdate(context.Context, *corev1.ConfigMap, *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, nil
}

func (protector) ValidateDelete(_ context.Context, object *corev1.ConfigMap) (admission.Warnings, error) {
	if object.Annotations["proxy.example/keep"] == "true" {
		return nil, errors.New("remove the annotation proxy.example/keep first")
	}
	return nil, nil
}
