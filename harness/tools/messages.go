// Writes types/src/schema/messages.json; see messages.sh.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// special contains the types with their own JSON encoding, which the table cannot describe.
var special = map[string]string{
	"resource.Quantity":      "quantity",
	"resource.QuantityValue": "quantity",
	"v1.Time":                "time",
	"v1.MicroTime":           "micro-time",
	"intstr.IntOrString":     "int-or-string",
}

// values contains the messages that are encoded as their first field that is set: the Go names, in the order of MarshalJSON.
var values = map[string][]string{
	"runtime.RawExtension":            {"Raw"},
	"v1.FieldsV1":                     {"Raw"},
	"v1.JSON":                         {"Raw"},
	"v1.JSONSchemaPropsOrArray":       {"JSONSchemas", "Schema"},
	"v1.JSONSchemaPropsOrBool":        {"Schema", "Allows"},
	"v1.JSONSchemaPropsOrStringArray": {"Property", "Schema"},
}

type field struct {
	number     int
	name, kind string
	options    options
}

// options contains what most fields do not have.
type options struct {
	// The Go type, if the kind does not determine it, such as "v1.ResourceList".
	Go string `json:"go,omitempty"`
	// How a strategic merge patch changes it: "merge", or "merge:KEY" for a list of objects.
	Patch string `json:"patch,omitempty"`
	// How server-side apply treats a list: "atomic", "set", or "map:KEY,KEY".
	List string `json:"list,omitempty"`
	// How server-side apply treats a map or a struct in this field: "atomic" or "granular".
	Map string `json:"map,omitempty"`
	// The default in OpenAPI, unless it is zero.
	Default  json.RawMessage `json:"default,omitempty"`
	Required bool            `json:"required,omitempty"`
}

type table struct {
	kinds map[string]string
	// The kinds that occur only in responses.
	responses map[string]string
	messages  map[string][]field
	values    map[string][]field
	// The messages that server-side apply treats as atomic.
	atomic []string
	// The OpenAPI schemas by name.
	schemas map[string]openAPI
}

// openAPI is an OpenAPI schema, or the schema of one of its properties.
type openAPI struct {
	Properties map[string]openAPI `json:"properties"`
	Required   []string           `json:"required"`
	Default    json.RawMessage    `json:"default"`
	ListType   string             `json:"x-kubernetes-list-type"`
	ListKeys   []string           `json:"x-kubernetes-list-map-keys"`
	MapType    string             `json:"x-kubernetes-map-type"`
}

// schemas returns the schemas of all groups, which are in files of the upstream repository.
func schemas(folder string) (map[string]openAPI, error) {
	found := map[string]openAPI{}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var document struct {
			Components struct{ Schemas map[string]openAPI }
		}
		if err := json.Unmarshal(text, &document); err != nil {
			return nil, err
		}
		maps.Copy(found, document.Components.Schemas)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no schemas in %s", folder)
	}
	return found, nil
}

func schemaName(of reflect.Type) string {
	path := strings.ReplaceAll(strings.TrimPrefix(of.PkgPath(), "k8s.io/"), "/", ".")
	return "io.k8s." + path + "." + of.Name()
}

// goType returns the Go type of a field of this kind, unless the type is named.
func goType(kind string) string {
	kind = strings.TrimLeft(kind, "!?")
	if element, found := strings.CutPrefix(kind, "[]"); found {
		return "[]" + goType(element)
	}
	if element, found := strings.CutPrefix(kind, "{}"); found {
		return "map[string]" + goType(element)
	}
	if _, name, found := strings.Cut(kind, "="); found {
		return name
	}
	switch kind {
	case "double":
		return "float64"
	case "bytes":
		return "[]uint8"
	case "quantity":
		return "resource.Quantity"
	case "time":
		return "v1.Time"
	case "micro-time":
		return "v1.MicroTime"
	case "int-or-string":
		return "intstr.IntOrString"
	}
	return kind[strings.LastIndex(kind, "/")+1:]
}

// options returns what OpenAPI and the Go tags say about a field of a message with these properties.
func (t *table) options(f reflect.StructField, name, kind string, in openAPI) options {
	result := options{Patch: patch(f)}
	of := f.Type
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if name := of.String(); name != goType(kind) {
		result.Go = name
	}
	schema := in.Properties[name]
	result.List = schema.ListType
	if schema.ListType == "map" {
		result.List += ":" + strings.Join(schema.ListKeys, ",")
	}
	result.Map = schema.MapType
	switch string(schema.Default) {
	case "", `""`, "0", "false", "{}":
	default:
		result.Default = schema.Default
	}
	result.Required = slices.Contains(in.Required, name)
	return result
}

func messageName(t reflect.Type) string {
	path := strings.Split(t.PkgPath(), "/")
	return strings.Join(path[max(0, len(path)-2):], "/") + "." + t.Name()
}

func hasMethod(t reflect.Type, name string) bool {
	_, found := reflect.PointerTo(t).MethodByName(name)
	return found
}

// base returns the name of a type that is not a list, map, or pointer, and adds its message to the table.
func (t *table) base(of reflect.Type) string {
	if name, found := special[of.String()]; found {
		return name
	}
	named := ""
	if of.PkgPath() != "" {
		named = "=" + of.String()
	}
	switch of.Kind() {
	case reflect.String:
		return "string" + named
	case reflect.Bool:
		return "bool" + named
	case reflect.Int32:
		return "int32" + named
	case reflect.Int64:
		return "int64" + named
	case reflect.Float64:
		return "double" + named
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		// A list that is a message, such as ExtraValue.
		if !hasMethod(of, "Unmarshal") {
			panic("a list in a list: " + of.String())
		}
		name := messageName(of)
		t.values[name] = []field{{1, "", "[]" + t.base(of.Elem()), options{}}}
		return name
	case reflect.Struct:
		name := messageName(of)
		t.add(of, name, t.schemas[schemaName(of)])
		return name
	default:
		panic("no type of the table: " + of.String())
	}
}

func (t *table) kind(of reflect.Type, shownWhenZero, json bool) string {
	if json {
		return "json"
	}
	mark := ""
	if shownWhenZero {
		mark = "!"
	}
	switch {
	case of.Kind() == reflect.Pointer:
		return mark + "?" + t.base(of.Elem())
	case of.Kind() == reflect.Map:
		if of.Key().Kind() != reflect.String {
			panic("a map whose keys are no strings: " + of.String())
		}
		return mark + "{}" + t.base(of.Elem())
	case of.Kind() == reflect.Slice && of.Elem().Kind() != reflect.Uint8 && !hasMethod(of, "Unmarshal"):
		element := of.Elem()
		if element.Kind() == reflect.Pointer {
			element = element.Elem()
		}
		return mark + "[]" + t.base(element)
	default:
		return mark + t.base(of)
	}
}

func number(f reflect.StructField) int {
	tag := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(tag) < 2 {
		panic("no number: " + f.Name)
	}
	number, err := strconv.Atoi(tag[1])
	if err != nil {
		panic(err)
	}
	return number
}

// patch returns the strategies except retainKeys, which only clients use: the patch itself says which keys stay.
func patch(f reflect.StructField) string {
	strategy := ""
	for _, word := range strings.Split(f.Tag.Get("patchStrategy"), ",") {
		switch word {
		case "", "retainKeys":
		case "merge", "replace":
			strategy = word
		default:
			panic("a patch strategy that the table does not know: " + word)
		}
	}
	if key := f.Tag.Get("patchMergeKey"); key != "" {
		strategy += ":" + key
	}
	return strategy
}

// add adds the message of a struct with this OpenAPI schema.
func (t *table) add(of reflect.Type, name string, schema openAPI) {
	if _, known := t.messages[name]; known || t.values[name] != nil {
		return
	}
	if order, found := values[of.String()]; found {
		t.values[name] = []field{}
		var fields []field
		for _, wanted := range order {
			f, _ := of.FieldByName(wanted)
			fields = append(fields, field{number(f), "", t.kind(f.Type, true, wanted == "Raw"), options{}})
		}
		t.values[name] = fields
		return
	}
	if hasMethod(of, "MarshalJSON") {
		panic("a JSON form that the table does not know: " + of.String())
	}
	t.messages[name] = []field{}
	if schema.MapType == "atomic" {
		t.atomic = append(t.atomic, name)
	}
	var fields []field
	for i := range of.NumField() {
		f := of.Field(i)
		if f.Type == reflect.TypeFor[meta.TypeMeta]() {
			continue
		}
		tag := strings.Split(f.Tag.Get("json"), ",")
		if tag[0] == "-" {
			continue
		}
		options := map[string]bool{}
		for _, option := range tag[1:] {
			options[option] = true
		}
		// encoding/json inlines the fields of an embedded struct without a name into its parent.
		if tag[0] == "" && !f.Anonymous {
			panic("no JSON name: " + name + "." + f.Name)
		}
		// encoding/json never omits a struct because it is empty, only because it is zero.
		shown := !options["omitzero"] && (!options["omitempty"] || f.Type.Kind() == reflect.Struct)
		if tag[0] == "" {
			// OpenAPI has the fields of an embedded struct in its parent, and often only there.
			embedded := t.schemas[schemaName(f.Type)]
			if embedded.Properties == nil {
				embedded = openAPI{Properties: schema.Properties}
			}
			t.add(f.Type, messageName(f.Type), embedded)
		}
		kind := t.kind(f.Type, shown, false)
		fields = append(fields, field{number(f), tag[0], kind, t.options(f, tag[0], kind, schema)})
	}
	t.messages[name] = fields
}

func print(label string, messages map[string][]field) {
	names := make([]string, 0, len(messages))
	for name := range messages {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Printf("%q:{\n", label)
	for i, name := range names {
		parts := []string{}
		for _, f := range messages[name] {
			options := ""
			if text, err := json.Marshal(f.options); err != nil {
				panic(err)
			} else if string(text) != "{}" {
				options = "," + string(text)
			}
			parts = append(parts, fmt.Sprintf("[%d,%q,%q%s]", f.number, f.name, f.kind, options))
		}
		comma := ","
		if i == len(names)-1 {
			comma = ""
		}
		fmt.Printf("%q:[%s]%s\n", name, strings.Join(parts, ","), comma)
	}
	fmt.Print("}")
}

func printKinds(label string, named map[string]string) {
	kinds := make([]string, 0, len(named))
	for name, message := range named {
		kinds = append(kinds, fmt.Sprintf("%q:%q", name, message))
	}
	sort.Strings(kinds)
	fmt.Printf("%q:{\n%s\n},\n", label, strings.Join(kinds, ",\n"))
}

type kind struct{ Group, Version, Kind string }

func main() {
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	check(apiextensions.AddToScheme(scheme.Scheme))
	check(apiregistration.AddToScheme(scheme.Scheme))
	text, err := os.ReadFile(os.Args[1])
	check(err)
	var groups []struct {
		Group    string
		Versions []struct {
			Version   string
			Resources []struct {
				ResponseKind kind
				Subresources []struct{ ResponseKind kind }
			}
		}
	}
	check(json.Unmarshal(text, &groups))
	described, err := schemas(os.Args[2])
	check(err)
	t := table{map[string]string{}, map[string]string{}, map[string][]field{}, map[string][]field{}, nil, described}
	t.kinds["DeleteOptions"] = t.base(reflect.TypeFor[meta.DeleteOptions]())
	// Kinds that occur only in responses. Names without a version apply to every version.
	t.responses["Status"] = t.base(reflect.TypeFor[meta.Status]())
	t.responses["APIVersions"] = t.base(reflect.TypeFor[meta.APIVersions]())
	t.responses["APIGroup"] = t.base(reflect.TypeFor[meta.APIGroup]())
	t.responses["APIGroupList"] = t.base(reflect.TypeFor[meta.APIGroupList]())
	t.responses["APIResourceList"] = t.base(reflect.TypeFor[meta.APIResourceList]())
	t.responses["ListMeta"] = t.base(reflect.TypeFor[meta.ListMeta]())
	t.responses["meta.k8s.io/v1 PartialObjectMetadata"] = t.base(reflect.TypeFor[meta.PartialObjectMetadata]())
	t.responses["meta.k8s.io/v1 PartialObjectMetadataList"] = t.base(reflect.TypeFor[meta.PartialObjectMetadataList]())
	t.responses["meta.k8s.io/v1beta1 PartialObjectMetadata"] = t.base(reflect.TypeFor[metav1beta1.PartialObjectMetadata]())
	t.responses["meta.k8s.io/v1beta1 PartialObjectMetadataList"] = t.base(reflect.TypeFor[metav1beta1.PartialObjectMetadataList]())
	t.responses["apidiscovery.k8s.io/v2 APIGroupDiscoveryList"] = t.base(reflect.TypeFor[apidiscovery.APIGroupDiscoveryList]())
	for _, group := range groups {
		for _, version := range group.Versions {
			add := func(k kind) {
				if k.Group == "" && k.Version == "" {
					k.Group, k.Version = group.Group, version.Version
				}
				gvk := schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
				object, err := scheme.Scheme.New(gvk)
				if err != nil {
					fmt.Fprintln(os.Stderr, "no Go type:", gvk)
					return
				}
				t.kinds[gvk.GroupVersion().String()+" "+k.Kind] = t.base(reflect.TypeOf(object).Elem())
			}
			for _, resource := range version.Resources {
				add(resource.ResponseKind)
				for _, subresource := range resource.Subresources {
					add(subresource.ResponseKind)
				}
			}
		}
	}
	fmt.Print("{")
	printKinds("kinds", t.kinds)
	printKinds("responses", t.responses)
	sort.Strings(t.atomic)
	fmt.Printf("\"atomic\":[\n\"%s\"\n],\n", strings.Join(t.atomic, "\",\n\""))
	print("messages", t.messages)
	fmt.Print(",\n")
	print("values", t.values)
	fmt.Print("}\n")
}
