package main

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// The types, versions and conversions of one kind. Versions differ in how a field of `spec` is called.
type kind struct {
	question *question
	parser   *typed.Parser
	empty    map[string]any
}

func (k *kind) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	u := object.(*unstructured.Unstructured)
	name, known := k.question.Types[u.GetAPIVersion()]
	if !known {
		return nil, runtime.NewNotRegisteredErrForKind("oracle", u.GroupVersionKind())
	}
	of := typed.DeducedParseableType
	if name != "deduced" {
		of = k.parser.Type(name)
	}
	return of.FromUnstructured(u.Object, options...)
}

func (k *kind) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	object, ok := value.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("failed to convert value to unstructured for type %T", value.AsValue().Unstructured())
	}
	return &unstructured.Unstructured{Object: object}, nil
}

func (k *kind) Convert(in, out, context any) error { return errors.New("not used") }

func (k *kind) ConvertFieldLabel(gvk schema.GroupVersionKind, label, value string) (string, string, error) {
	return "", "", errors.New("not used")
}

func (k *kind) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	version := to.(schema.GroupVersion).String()
	object := in.(*unstructured.Unstructured)
	if object.GetAPIVersion() == version {
		return object, nil
	}
	if object.GetKind() == "" {
		return nil, runtime.NewMissingKindErr("unstructured object has no kind")
	}
	if object.GetAPIVersion() == "" {
		return nil, runtime.NewMissingVersionErr("unstructured object has no version")
	}
	if _, known := k.question.Types[version]; !known {
		return nil, runtime.NewNotRegisteredErrForKind("oracle", object.GroupVersionKind())
	}
	object = object.DeepCopy()
	if spec, ok := object.Object["spec"].(map[string]any); ok {
		from, to := k.question.Rename[object.GetAPIVersion()], k.question.Rename[version]
		if value, found := spec[from]; found && from != to {
			delete(spec, from)
			spec[to] = value
		}
	}
	object.SetAPIVersion(version)
	return object, nil
}

func (k *kind) Default(runtime.Object) {}

func (k *kind) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	object := (&unstructured.Unstructured{Object: k.empty}).DeepCopy()
	object.SetGroupVersionKind(gvk)
	return object, nil
}

// The time of a write.
func moment(index int) string {
	return fmt.Sprintf("2020-01-01T00:00:%02dZ", index)
}

// The object after each write, or why it was refused.
func (q *question) written(parser *typed.Parser) (any, error) {
	k := &kind{question: q, parser: parser, empty: map[string]any{}}
	if q.Empty != nil {
		empty, err := decoded(q.Empty)
		if err != nil {
			return nil, err
		}
		k.empty = empty.(map[string]any)
	}
	var answers []any
	var live *unstructured.Unstructured
	for index, write := range q.Writes {
		after, err := k.write(live, write)
		if err != nil {
			answers = append(answers, refused(err))
			continue
		}
		touched := false
		if entries, ok, _ := unstructured.NestedSlice(after.Object, "metadata", "managedFields"); ok {
			for _, entry := range entries {
				entry := entry.(map[string]any)
				if text, ok := entry["time"].(string); ok {
					if at, err := time.Parse(time.RFC3339, text); err == nil && at.Year() > 2020 {
						entry["time"] = moment(index)
						touched = true
					}
				}
			}
			if err := unstructured.SetNestedSlice(after.Object, entries, "metadata", "managedFields"); err != nil {
				return nil, err
			}
		}
		if live == nil {
			if err := unstructured.SetNestedField(after.Object, "uid", "metadata", "uid"); err != nil {
				return nil, err
			}
		}
		live = after
		answers = append(answers, map[string]any{"object": live.DeepCopy().Object, "isTimed": touched})
	}
	return answers, nil
}

func (k *kind) write(live *unstructured.Unstructured, write write) (*unstructured.Unstructured, error) {
	raw, err := decoded(write.Object)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: raw.(map[string]any)}
	version := write.Version
	if version == "" {
		version = "example.com/v1"
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, err
	}
	gvk := gv.WithKind(k.question.Kind)
	reset := map[fieldpath.APIVersion]fieldpath.Filter{}
	for version, paths := range write.Reset {
		set := fieldpath.NewSet()
		for _, path := range paths {
			var parts []any
			for _, name := range path {
				parts = append(parts, name)
			}
			set.Insert(fieldpath.MakePathOrDie(parts...))
		}
		reset[fieldpath.APIVersion(version)] = fieldpath.NewExcludeSetFilter(set)
	}
	for version, paths := range write.Include {
		var prefixes []*fieldpath.SetMatcher
		for _, path := range paths {
			var parts []any
			for _, name := range path {
				if name == "*" {
					parts = append(parts, fieldpath.MatchAnyPathElement())
				} else {
					parts = append(parts, name)
				}
			}
			prefixes = append(prefixes, fieldpath.MakePrefixMatcherOrDie(parts...))
		}
		reset[fieldpath.APIVersion(version)] = fieldpath.NewIncludeMatcherFilter(prefixes...)
	}
	hub := schema.GroupVersion{Group: gv.Group, Version: "v1"}
	manager, err := managedfields.NewDefaultFieldManager(k, k, k, k, gvk, hub, write.Subresource, reset)
	if err != nil {
		return nil, err
	}
	var before runtime.Object
	if live == nil {
		before, _ = k.New(gvk)
	} else {
		converted, err := k.ConvertToVersion(live.DeepCopy(), gv)
		if err != nil {
			return nil, err
		}
		before = converted
	}
	switch write.Do {
	case "update":
	case "patch":
		object = before.(*unstructured.Unstructured).DeepCopy()
		patch(object.Object, raw.(map[string]any))
	case "apply":
		after, err := manager.Apply(before, object, write.By, write.Force)
		if err != nil {
			return nil, err
		}
		// The result is in the version in which objects are stored.
		after, err = k.ConvertToVersion(after, gv)
		if err != nil {
			return nil, err
		}
		return after.(*unstructured.Unstructured), nil
	default:
		return nil, fmt.Errorf("unknown write %q", write.Do)
	}
	after, err := manager.Update(before, object, write.By)
	if err != nil {
		return nil, err
	}
	return after.(*unstructured.Unstructured), nil
}

// A JSON merge patch.
func patch(object, patches map[string]any) {
	for name, value := range patches {
		if value == nil {
			delete(object, name)
			continue
		}
		inner, isMap := value.(map[string]any)
		if !isMap {
			object[name] = value
			continue
		}
		old, isMap := object[name].(map[string]any)
		if !isMap {
			old = map[string]any{}
			object[name] = old
		}
		patch(old, inner)
	}
}

func refused(err error) any {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return map[string]any{"error": err.Error()}
	}
	answer := map[string]any{"status": status.Status().Code, "error": err.Error()}
	if details := status.Status().Details; details != nil && len(details.Causes) > 0 {
		var causes []string
		for _, cause := range details.Causes {
			if cause.Type == metav1.CauseTypeFieldManagerConflict {
				causes = append(causes, cause.Message+" | "+cause.Field)
			}
		}
		sort.Strings(causes)
		answer["causes"] = strings.Join(causes, "\n")
	}
	return answer
}
