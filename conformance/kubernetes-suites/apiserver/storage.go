package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/client-go/rest"
)

// WithoutStorage returns a client of etcd for admit, which does not read etcd. If a test stores a webhook configuration of
// v1beta1, a version that kube-apiserver no longer serves, the client creates one in admit instead.
func WithoutStorage(storage clientv3.KV, api rest.Interface) clientv3.KV {
	return &createdObjects{KV: storage, api: api}
}

type createdObjects struct {
	clientv3.KV
	api rest.Interface
}

// Put creates a webhook configuration of v1 that requests the same AdmissionReviews.
func (c *createdObjects) Put(ctx context.Context, key, value string, options ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	var configuration map[string]any
	err := json.Unmarshal([]byte(value), &configuration)
	if err != nil || configuration["apiVersion"] != "admissionregistration.k8s.io/v1beta1" {
		return c.KV.Put(ctx, key, value, options...)
	}
	configuration["apiVersion"] = "admissionregistration.k8s.io/v1"
	webhooks, _ := configuration["webhooks"].([]any)
	for _, webhook := range webhooks {
		if fields, ok := webhook.(map[string]any); ok {
			fields["sideEffects"] = "None"
		}
	}
	body, err := json.Marshal(configuration)
	if err != nil {
		return nil, err
	}
	resource := strings.ToLower(fmt.Sprint(configuration["kind"])) + "s"
	err = c.api.Post().AbsPath("/apis/admissionregistration.k8s.io/v1", resource).
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
	return &clientv3.PutResponse{}, err
}
