package kubecel

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// The expressions that the example `speed` of the Rust crate measures.
const folder = "../../../cel/examples/speed/"

func BenchmarkConditions(b *testing.B) {
	text, err := os.ReadFile(folder + "conditions.txt")
	if err != nil {
		b.Fatal(err)
	}
	contexts, err := ReadContexts(folder + "contexts.json")
	if err != nil {
		b.Fatal(err)
	}
	environment, err := NewEnvironment("1.37", true)
	if err != nil {
		b.Fatal(err)
	}
	pod := contexts["pod"]
	bindings := plugincel.OptionalVariableBindings{Authorizer: authorizer.AuthorizerFunc(permissions)}
	for _, condition := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		compiled := environment.compile(condition, cel.BoolType)
		if compiled.Error != nil {
			b.Fatalf("%s: %v", condition, compiled.Error)
		}
		conditions := plugincel.NewCondition([]plugincel.CompilationResult{compiled})
		b.Run("compile "+condition, func(b *testing.B) {
			for b.Loop() {
				environment.compile(condition, cel.BoolType)
			}
		})
		b.Run("evaluate "+condition, func(b *testing.B) {
			for b.Loop() {
				results, _, err := conditions.ForInput(
					context.Background(), pod.attributes, pod.request, bindings, pod.namespace, math.MaxInt64)
				if err != nil || results[0].Error != nil {
					b.Fatal(err, results[0].Error)
				}
			}
		})
	}
}
