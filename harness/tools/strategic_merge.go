// Prints random strategic merge patches and the results of the upstream library, one JSON object per line: `kind` (apiVersion
// and kind), `object`, `patch`, and the patched object (`ok`), the error (`error`), or whether the library panics (`panic`).
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// node describes possible values: an object with fields, a list of items, a map of strings, or one of several values.
type node struct {
	fields map[string]node
	items  *node
	// key is the field that identifies the items of a list.
	key    string
	isMap  bool
	values []any
}

func of(values ...any) node              { return node{values: values} }
func object(fields map[string]node) node { return node{fields: fields} }
func list(items node, key string) node   { return node{items: &items, key: key} }

var (
	names   = of("a", "b", "c", "d", "e")
	numbers = of(int64(0), int64(1), int64(2), int64(80))
	labels  = node{isMap: true}

	metadata = object(map[string]node{
		"name":        of("n"),
		"labels":      labels,
		"annotations": labels,
		"finalizers":  list(of("x/a", "x/b", "x/c", "x/d"), ""),
		"ownerReferences": list(object(map[string]node{
			"uid": names, "name": names, "controller": of(true, false),
		}), "uid"),
	})
	container = object(map[string]node{
		"name":         names,
		"image":        names,
		"args":         list(names, ""),
		"env":          list(object(map[string]node{"name": names, "value": names}), "name"),
		"ports":        list(object(map[string]node{"containerPort": numbers, "name": names, "protocol": of("TCP", "UDP")}), "containerPort"),
		"volumeMounts": list(object(map[string]node{"mountPath": names, "name": names}), "mountPath"),
		"resources":    object(map[string]node{"limits": labels, "claims": list(object(map[string]node{"name": names}), "name")}),
		"securityContext": object(map[string]node{
			"privileged":   of(true, false),
			"capabilities": object(map[string]node{"add": list(names, "")}),
		}),
	})
	volume = object(map[string]node{
		"name":      names,
		"emptyDir":  object(map[string]node{"medium": of("", "Memory")}),
		"configMap": object(map[string]node{"name": names, "optional": of(true, false)}),
		"projected": object(map[string]node{"sources": list(object(map[string]node{"secret": object(map[string]node{"name": names})}), "")}),
	})
	podSpec = object(map[string]node{
		"containers":       list(container, "name"),
		"initContainers":   list(container, "name"),
		"volumes":          list(volume, "name"),
		"imagePullSecrets": list(object(map[string]node{"name": names}), "name"),
		"tolerations":      list(object(map[string]node{"key": names, "operator": of("Exists")}), ""),
		"hostAliases":      list(object(map[string]node{"ip": names, "hostnames": list(names, "")}), "ip"),
		"nodeSelector":     labels,
		"hostNetwork":      of(true, false),
		"priority":         numbers,
		"topologySpreadConstraints": list(object(map[string]node{
			"topologyKey": names, "maxSkew": numbers, "labelSelector": object(map[string]node{"matchLabels": labels}),
		}), "topologyKey"),
		"schedulingGates": list(object(map[string]node{"name": names}), "name"),
	})
	conditions = list(object(map[string]node{"type": names, "status": of("True", "False")}), "type")
)

var kinds = []struct {
	kind  [2]string
	empty any
	node  node
}{
	{[2]string{"apps/v1", "Deployment"}, appsv1.Deployment{}, object(map[string]node{
		"metadata": metadata,
		"spec": object(map[string]node{
			"replicas": numbers,
			"strategy": object(map[string]node{
				"type":          of("Recreate", "RollingUpdate"),
				"rollingUpdate": object(map[string]node{"maxSurge": of(int64(1), "25%")}),
			}),
			"template": object(map[string]node{"metadata": metadata, "spec": podSpec}),
		}),
		"status": object(map[string]node{"conditions": conditions}),
	})},
	{[2]string{"v1", "Pod"}, corev1.Pod{}, object(map[string]node{
		"metadata": metadata, "spec": podSpec,
		"status": object(map[string]node{
			"conditions": conditions,
			"podIPs":     list(object(map[string]node{"ip": names}), "ip"),
		}),
	})},
	{[2]string{"v1", "Service"}, corev1.Service{}, object(map[string]node{
		"metadata": metadata,
		"spec": object(map[string]node{
			"ports":       list(object(map[string]node{"port": numbers, "name": names, "targetPort": of(int64(1), "a")}), "port"),
			"externalIPs": list(names, ""),
			"selector":    labels,
		}),
	})},
	{[2]string{"v1", "ServiceAccount"}, corev1.ServiceAccount{}, object(map[string]node{
		"metadata":         metadata,
		"secrets":          list(object(map[string]node{"name": names, "namespace": names}), "name"),
		"imagePullSecrets": list(object(map[string]node{"name": names}), "name"),
	})},
	{[2]string{"v1", "ConfigMap"}, corev1.ConfigMap{}, object(map[string]node{"metadata": metadata, "data": labels})},
	{[2]string{"rbac.authorization.k8s.io/v1", "ClusterRole"}, rbacv1.ClusterRole{}, object(map[string]node{
		"metadata": metadata,
		"rules":    list(object(map[string]node{"verbs": list(names, ""), "resources": list(names, "")}), ""),
	})},
}

type random struct{ *rand.Rand }

func (r random) one(of int) bool        { return r.IntN(of) == 0 }
func (r random) value(values []any) any { return values[r.IntN(len(values))] }
func (r random) any() any {
	return r.value([]any{"a", int64(1), 1.5, true, nil, []any{}, []any{"a"}, map[string]any{}, map[string]any{"a": "b"}, []any{[]any{}}})
}

// document returns a random value of a node, which is smaller at greater depth.
func (r random) document(n node, depth int) any {
	switch {
	case n.fields != nil:
		made := map[string]any{}
		for _, name := range sorted(n.fields) {
			if depth == 0 || r.one(2) {
				made[name] = r.document(n.fields[name], depth+1)
			}
		}
		return made
	case n.items != nil:
		return r.items(n, func() any { return r.document(*n.items, depth+1) })
	case n.isMap:
		made := map[string]any{}
		for range r.IntN(3) {
			made[r.value(names.values).(string)] = r.value(names.values)
		}
		return made
	default:
		return r.value(n.values)
	}
}

// items returns a random list, in which most items have a key.
func (r random) items(n node, item func() any) []any {
	made := []any{}
	for range r.IntN(4) {
		one := item()
		if fields, isObject := one.(map[string]any); isObject && n.key != "" && !r.one(60) {
			fields[n.key] = r.value(n.items.fields[n.key].values)
		}
		made = append(made, one)
	}
	return made
}

// patch returns a random patch of a value, which may be absent.
func (r random) patch(n node, present any, depth int) any {
	switch {
	case r.one(14):
		return nil
	case r.one(150):
		return r.any()
	case n.fields != nil:
		return r.patchObject(n, present, depth)
	case n.items != nil:
		return r.items(n, func() any {
			if n.items.fields == nil {
				return r.value(n.items.values)
			}
			made := r.patch(*n.items, nil, depth+1)
			if fields, isObject := made.(map[string]any); isObject && r.one(200) {
				fields[n.key] = r.any()
				return made
			}
			if fields, isObject := made.(map[string]any); isObject && n.key != "" && r.one(6) {
				return map[string]any{"$patch": "delete", n.key: fields[n.key]}
			}
			if fields, isObject := made.(map[string]any); isObject && r.one(20) {
				fields["$patch"] = r.value([]any{"replace", "merge", "other"})
			}
			return made
		})
	case n.isMap:
		made := r.document(n, depth).(map[string]any)
		// The order of a map is random, so it is not used here.
		for _, key := range names.values {
			if _, isThere := made[key.(string)]; isThere && r.one(4) {
				made[key.(string)] = nil
			}
		}
		if r.one(10) {
			made["$patch"] = r.value([]any{"replace", "delete"})
		}
		return made
	default:
		return r.value(n.values)
	}
}

func (r random) patchObject(n node, present any, depth int) any {
	was, _ := present.(map[string]any)
	made := map[string]any{}
	for _, name := range sorted(n.fields) {
		if !r.one(min(depth+2, 4)) {
			continue
		}
		field := n.fields[name]
		made[name] = r.patch(field, was[name], depth+1)
		if field.items == nil {
			continue
		}
		if r.one(4) {
			made["$setElementOrder/"+name] = r.order(field, was[name], made[name])
			if r.one(4) {
				delete(made, name)
			}
		}
		if field.items.fields == nil && r.one(3) {
			made["$deleteFromPrimitiveList/"+name] = r.document(field, depth)
			if r.one(2) {
				delete(made, name)
			}
		}
	}
	if r.one(12) {
		kept := []any{}
		for _, name := range sorted(n.fields) {
			if _, isPatched := made[name]; isPatched && !r.one(12) || r.one(3) {
				kept = append(kept, name)
			}
		}
		made["$retainKeys"] = kept
	}
	if r.one(25) {
		made["$patch"] = r.value([]any{"replace", "delete", "merge", "other", r.any()})
	}
	if r.one(60) {
		made[r.value([]any{"bogus", "$retainKeys", "$setElementOrder", "$setElementOrder/bogus", "$deleteFromPrimitiveList", "$deleteFromPrimitiveList/bogus"}).(string)] = r.any()
	}
	return made
}

// order returns an order of the present and the given items, usually one that agrees with the order in the patch.
func (r random) order(n node, present, given any) any {
	made := []any{}
	add := func(items any) {
		list, _ := items.([]any)
		for _, item := range list {
			fields, isObject := item.(map[string]any)
			switch {
			case fields["$patch"] != nil && !r.one(8):
			case isObject && n.key != "":
				made = append(made, map[string]any{n.key: fields[n.key]})
			default:
				made = append(made, item)
			}
		}
	}
	if r.one(2) {
		add(given)
		add(present)
	} else {
		add(present)
		add(given)
	}
	if r.one(6) {
		r.Shuffle(len(made), func(i, j int) { made[i], made[j] = made[j], made[i] })
	}
	return made
}

// some returns about half of the items, or all of them.
func (r random) some(items []any) []any {
	if r.one(3) {
		return items
	}
	made := []any{}
	for _, item := range items {
		if r.one(2) {
			made = append(made, item)
		}
	}
	return made
}

// arranged returns a list and a patch that sets its order. Most patches also delete items and add others.
func (r random) arranged() (kind string, made, patch map[string]any) {
	present, given := []any{}, []any{}
	if r.one(4) {
		field := list(names, "")
		for _, place := range r.Perm(len(names.values)) {
			if r.one(2) {
				present = append(present, names.values[place])
			}
			if r.one(3) {
				given = append(given, names.values[place])
			}
		}
		patch = map[string]any{"externalIPs": given, "$setElementOrder/externalIPs": r.order(field, r.some(present), given)}
		if r.one(2) {
			patch["$deleteFromPrimitiveList/externalIPs"] = r.document(field, 0)
		}
		for _, name := range sorted(patch) {
			if r.one(4) {
				delete(patch, name)
			}
		}
		return "Service", map[string]any{"spec": map[string]any{"externalIPs": present}}, map[string]any{"spec": patch}
	}
	for _, place := range r.Perm(len(names.values)) {
		name := names.values[place]
		if !r.one(3) {
			present = append(present, map[string]any{"name": name, "namespace": "old"})
		}
		item := map[string]any{"name": name}
		switch r.IntN(8) {
		case 0, 1:
			item["$patch"] = "delete"
		case 2, 3:
			item["namespace"] = "new"
		case 4:
			if r.one(6) {
				item["$patch"] = r.value([]any{"merge", "replace"})
			}
		default:
			continue
		}
		if r.one(60) {
			item["name"] = r.any()
		}
		given = append(given, item)
	}
	field := list(object(map[string]node{"name": names}), "name")
	patch = map[string]any{"secrets": given, "$setElementOrder/secrets": r.order(field, r.some(present), given)}
	if r.one(20) {
		patch["$setElementOrder/secrets"] = []any{}
	}
	return "ServiceAccount", map[string]any{"secrets": present}, patch
}

func sorted[V any](fields map[string]V) []string {
	made := make([]string, 0, len(fields))
	for name := range fields {
		made = append(made, name)
	}
	for i := range made {
		for j := i; j > 0 && made[j] < made[j-1]; j-- {
			made[j], made[j-1] = made[j-1], made[j]
		}
	}
	return made
}

// merged returns the result of the library.
func merged(object, patch map[string]any, empty any) (outcome map[string]any) {
	defer func() {
		if recover() != nil {
			outcome = map[string]any{"panic": true}
		}
	}()
	meta, err := strategicpatch.NewPatchMetaFromStruct(empty)
	if err != nil {
		panic(err)
	}
	made, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(object, patch, meta)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"ok": made}
}

func clone(value any) map[string]any {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var copied map[string]any
	if err := json.Unmarshal(text, &copied); err != nil {
		panic(err)
	}
	return decoded(copied).(map[string]any)
}

// decoded returns a value as in the API server: whole numbers are integers, and lists do not have spare capacity, into which the
// library would write.
func decoded(value any) any {
	switch value := value.(type) {
	case float64:
		if value == math.Trunc(value) {
			return int64(value)
		}
	case map[string]any:
		for key, member := range value {
			value[key] = decoded(member)
		}
	case []any:
		items := make([]any, len(value))
		for place, item := range value {
			items[place] = decoded(item)
		}
		return items
	}
	return value
}

func main() {
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	seed, err := strconv.ParseUint(os.Args[2], 10, 64)
	if err != nil {
		panic(err)
	}
	r := random{rand.New(rand.NewPCG(seed, 0))}
	for written := 0; written < count; {
		kind := kinds[r.IntN(len(kinds))]
		object := r.document(kind.node, 0)
		patch, isObject := r.patch(kind.node, object, 0).(map[string]any)
		if written%2 == 1 {
			name, present, given := r.arranged()
			for _, one := range kinds {
				if one.kind[1] == name {
					kind = one
				}
			}
			object, patch, isObject = present, given, true
		}
		if !isObject {
			continue
		}
		outcome := merged(clone(object), clone(patch), kind.empty)
		// Go iterates over a map in random order. A result that depends on it cannot be compared.
		isStable := true
		for range 100 {
			isStable = isStable && reflect.DeepEqual(outcome, merged(clone(object), clone(patch), kind.empty))
		}
		if !isStable {
			continue
		}
		outcome["kind"], outcome["object"], outcome["patch"] = kind.kind, object, patch
		line, err := json.Marshal(outcome)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(line))
		written++
	}
}
