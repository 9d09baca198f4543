// Prints how Go's encoder writes the internal types that kube-apiserver shows in errors. Each type has a list of its fields
// in order, as [name, path in the versioned object, form, type, whether an empty value is omitted].
//
// A path with a slash leads to a nested field. An empty path leads to the object itself, which can have one of several types;
// each of them has a field in Go. The form is "" for a value, "*" for a pointer, "[]" for a list, and "{}" for a map. The type
// is a type in the table, or `string`, `bool`, `number`, `quantity`, or `json` for a type with its own JSON encoding.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/certificates"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/flowcontrol"
	"k8s.io/kubernetes/pkg/apis/networking"
	"k8s.io/kubernetes/pkg/apis/policy"
	resourceapi "k8s.io/kubernetes/pkg/apis/resource"
	"k8s.io/kubernetes/pkg/apis/storage"
	"k8s.io/kubernetes/pkg/apis/storagemigration"
)

var roots = [][2]any{
	{core.PodSpec{}, corev1.PodSpec{}},
	{core.PodTemplateSpec{}, corev1.PodTemplateSpec{}},
	{core.EphemeralContainer{}, corev1.EphemeralContainer{}},
	{core.EventSource{}, corev1.EventSource{}},
	{core.ObjectReference{}, corev1.ObjectReference{}},
	{core.ScopeSelector{}, corev1.ScopeSelector{}},
	{flowcontrol.FlowSchemaSpec{}, flowcontrolv1.FlowSchemaSpec{}},
	{flowcontrol.PriorityLevelConfigurationSpec{}, flowcontrolv1.PriorityLevelConfigurationSpec{}},
	{networking.ServiceCIDRSpec{}, networkingv1.ServiceCIDRSpec{}},
	{policy.PodDisruptionBudgetSpec{}, policyv1.PodDisruptionBudgetSpec{}},
	{resourceapi.ResourceClaimTemplateSpec{}, resourcev1.ResourceClaimTemplateSpec{}},
	{storagemigration.StorageVersionMigrationSpec{}, storagemigrationv1beta1.StorageVersionMigrationSpec{}},
	{core.PersistentVolumeClaim{}, corev1.PersistentVolumeClaim{}},
	{core.PersistentVolumeSource{}, corev1.PersistentVolumeSource{}},
	{apps.StatefulSetUpdateStrategy{}, appsv1.StatefulSetUpdateStrategy{}},
	{certificates.PodCertificateRequest{}, certificatesv1beta1.PodCertificateRequest{}},
	{storage.CSINodeDriver{}, storagev1.CSINodeDriver{}},
	{batch.PodFailurePolicy{}, batchv1.PodFailurePolicy{}},
	{batch.SuccessPolicy{}, batchv1.SuccessPolicy{}},
	{admissionregistration.AuditAnnotation{}, admissionregistrationv1.AuditAnnotation{}},
	{apiextensions.CustomResourceDefinitionVersion{}, apiextensionsv1.CustomResourceDefinitionVersion{}},
}

var (
	marshaler = reflect.TypeFor[json.Marshaler]()
	quantity  = reflect.TypeFor[resource.Quantity]()
	table     = map[string][][5]any{}
)

// versioned is the path and the type of a field in a versioned type.
type versioned struct {
	path string
	of   reflect.Type
}

// fieldsOf collects the fields of a versioned type by their Go names.
func fieldsOf(of reflect.Type, prefix string, into map[string]versioned) {
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous {
			inner := prefix
			if name != "" {
				inner += name + "/"
			}
			fieldsOf(field.Type, inner, into)
			continue
		}
		into[field.Name] = versioned{prefix + name, field.Type}
	}
}

func name(of reflect.Type) string {
	parts := strings.Split(of.PkgPath(), "/")
	return parts[len(parts)-1] + "." + of.Name()
}

// form splits a type into its form (pointer, list, or map) and its element type.
func form(of reflect.Type) (string, reflect.Type) {
	switch of.Kind() {
	case reflect.Pointer:
		return "*", of.Elem()
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "", of
		}
		return "[]", of.Elem()
	case reflect.Map:
		return "{}", of.Elem()
	default:
		return "", of
	}
}

func typeName(of, other reflect.Type) string {
	switch {
	case of == quantity:
		return "quantity"
	case of.Implements(marshaler) || reflect.PointerTo(of).Implements(marshaler):
		return "json"
	}
	switch of.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		return "number"
	case reflect.Struct:
		describe(of, other)
		return name(of)
	case reflect.Interface:
		return "json"
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "json"
		}
	}
	panic(fmt.Sprintf("%v: unknown kind", of))
}

func describe(of, other reflect.Type) {
	if _, known := table[name(of)]; known {
		return
	}
	table[name(of)] = nil
	fields := map[string]versioned{}
	fieldsOf(other, "", fields)
	table[name(of)] = members(of, fields)
}

// members returns the fields of an internal type, including those of embedded types.
func members(of reflect.Type, fields map[string]versioned) [][5]any {
	made := [][5]any{}
	for i := range of.NumField() {
		field := of.Field(i)
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		// The conversion to an internal type omits these fields.
		if field.Type == reflect.TypeFor[metav1.TypeMeta]() {
			continue
		}
		if field.Anonymous && tag == "" {
			made = append(made, members(field.Type, fields)...)
			continue
		}
		shown := field.Name
		if tag != "" {
			shown = tag
		}
		from, known := fields[field.Name]
		if !known {
			panic(fmt.Sprintf("%v.%s: nothing like it", of, field.Name))
		}
		shape, inner := form(field.Type)
		otherShape, other := form(from.of)
		if otherShape != shape && otherShape == "" {
			other = from.of
		}
		isOptional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		made = append(made, [5]any{shown, from.path, shape, typeName(inner, other), isOptional})
	}
	return made
}

func main() {
	for _, root := range roots {
		describe(reflect.TypeOf(root[0]), reflect.TypeOf(root[1]))
	}
	names := make([]string, 0, len(table))
	for name := range table {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintln(os.Stdout, "{")
	for place, name := range names {
		line, err := json.Marshal(table[name])
		if err != nil {
			panic(err)
		}
		comma := ","
		if place == len(names)-1 {
			comma = ""
		}
		fmt.Fprintf(os.Stdout, "%q:%s%s\n", name, line, comma)
	}
	fmt.Fprintln(os.Stdout, "}")
}
