package kubecel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// description is a context in the format of the file.
type description struct {
	// The request, as in an AdmissionReview.
	Request admissionv1.AdmissionRequest `json:"request"`
	// Whether object and oldObject are Go types of k8s.io/api/core/v1, as built-in resources are in the API server, or
	// maps, as custom resources are.
	Typed           bool              `json:"typed"`
	Object          json.RawMessage   `json:"object"`
	OldObject       json.RawMessage   `json:"oldObject"`
	NamespaceObject *corev1.Namespace `json:"namespaceObject"`
}

// Context contains the input of an evaluation.
type Context struct {
	attributes *admission.VersionedAttributes
	request    *admissionv1.AdmissionRequest
	namespace  *corev1.Namespace
}

// ReadContexts reads a file that maps names to contexts.
func ReadContexts(file string) (map[string]*Context, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	descriptions := map[string]description{}
	if err := json.Unmarshal(text, &descriptions); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	contexts := map[string]*Context{}
	for name, description := range descriptions {
		made, err := description.context()
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", file, name, err)
		}
		contexts[name] = made
	}
	return contexts, nil
}

func (d *description) context() (*Context, error) {
	object, err := decode(d.Object, d.Typed)
	if err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	oldObject, err := decode(d.OldObject, d.Typed)
	if err != nil {
		return nil, fmt.Errorf("oldObject: %w", err)
	}
	options, err := d.options()
	if err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	request := &d.Request
	requester := &user.DefaultInfo{
		Name:   request.UserInfo.Username,
		UID:    request.UserInfo.UID,
		Groups: request.UserInfo.Groups,
		Extra:  map[string][]string{},
	}
	for key, values := range request.UserInfo.Extra {
		requester.Extra[key] = values
	}
	attributes := &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(
			object, oldObject, schema.GroupVersionKind(*request.RequestKind), request.Namespace, request.Name,
			schema.GroupVersionResource(*request.RequestResource), request.RequestSubResource,
			admission.Operation(request.Operation), options, *request.DryRun, requester),
		VersionedKind: schema.GroupVersionKind(request.Kind),
	}
	attributes.VersionedObject.Set(object)
	attributes.VersionedOldObject.Set(oldObject)
	return &Context{
		attributes: attributes,
		request:    plugincel.CreateAdmissionRequest(attributes.Attributes, request.Resource, request.Kind),
		namespace:  plugincel.CreateNamespaceObject(d.NamespaceObject),
	}, nil
}

// Fresh returns the same context for another evaluation. Values cache what has been read from them, without a lock.
func (c *Context) Fresh() *Context {
	attributes := *c.attributes
	return &Context{attributes: &attributes, request: c.request, namespace: c.namespace}
}

func (d *description) options() (runtime.Object, error) {
	var options runtime.Object
	switch d.Request.Operation {
	case admissionv1.Create:
		options = &metav1.CreateOptions{}
	case admissionv1.Update:
		options = &metav1.UpdateOptions{}
	case admissionv1.Delete:
		options = &metav1.DeleteOptions{}
	default:
		return nil, nil
	}
	return options, json.Unmarshal(d.Request.Options.Raw, options)
}

var core = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}()

// decode returns nil if there is no object.
func decode(text json.RawMessage, typed bool) (runtime.Object, error) {
	switch {
	case text == nil:
		return nil, nil
	case typed:
		object, kind, err := core.Decode(text, nil, nil)
		if err != nil {
			return nil, err
		}
		object.GetObjectKind().SetGroupVersionKind(*kind)
		return object, nil
	default:
		object := &unstructured.Unstructured{}
		return object, object.UnmarshalJSON(text)
	}
}

// allowed is the authorizer as a pointer. A pointer can be a map key, like the authorizer of the API server; a function cannot.
type allowed struct{ authorizer.AuthorizerFunc }

// permissions allows alice to get and create, and the service account default/sa1 everything. It fails for the verb
// "err" and denies the rest.
func permissions(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	name, verb := asked.GetUser().GetName(), asked.GetVerb()
	switch {
	case verb == "err":
		return authorizer.DecisionDeny, "", errors.New("boom")
	case name == "alice" && slices.Contains([]string{"get", "create"}, verb):
		return authorizer.DecisionAllow, "ok", nil
	case name == "system:serviceaccount:default:sa1":
		return authorizer.DecisionAllow, "sa", nil
	}
	return authorizer.DecisionDeny, "no", nil
}
