package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// The entries of the Scale of an object, and those of the object once the Scale has other entries.
func (q *question) scaled() map[string]any {
	mappings := managedfields.ResourcePathMappings{}
	for version, names := range q.Replicas {
		var parts []any
		for _, name := range names {
			parts = append(parts, name)
		}
		mappings[version] = nil
		if len(parts) > 0 {
			mappings[version] = fieldpath.MakePathOrDie(parts...)
		}
	}
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	handler := managedfields.NewScaleHandler(q.Parent, gv, mappings)
	answer := map[string]any{}
	say := func(name string, entries []metav1.ManagedFieldsEntry, err error) {
		if err != nil {
			answer[name+"Error"] = err.Error()
		} else {
			answer[name] = entries
		}
	}
	entries, err := handler.ToSubresource()
	say("scale", entries, err)
	entries, err = handler.ToParent(q.Scale)
	say("parent", entries, err)
	return answer
}
