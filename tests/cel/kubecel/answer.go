package kubecel

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// patience is the time limit for an expression; after it, the answer is that the expression takes too long.
const patience = 20 * time.Second

// Answer is the result of Kubernetes for an expression.
type Answer struct {
	Expr string `json:"expr"`
	// The schema that the rule belongs to; empty for admission conditions.
	Schema string `json:"schema,omitempty"`
	// The context or document on which it was evaluated; empty for the default.
	Context string `json:"context,omitempty"`
	// The static type, unless the expression does not compile.
	Type string `json:"type,omitempty"`
	// The value (see Render), and the name of its runtime type.
	Value     any    `json:"value,omitempty"`
	ValueType string `json:"value_type,omitempty"`
	// The cost of the evaluation.
	Cost     *uint64   `json:"cost,omitempty"`
	Estimate *Estimate `json:"estimate,omitempty"`
	// Why it is not a condition. If there is also a type, it compiles but is not boolean.
	CompileError string `json:"compile_error,omitempty"`
	// Why an expression that is not boolean cannot be evaluated at all; for a boolean one, that is the compile error.
	ProgramError string `json:"program_error,omitempty"`
	// Why the evaluation failed, without the common prefix of these errors: `expression '...' resulted in error: `.
	RunError string `json:"run_error,omitempty"`
	// Why there is no answer.
	Failure string `json:"failure,omitempty"`
}

// Estimate is a static cost estimate.
type Estimate struct {
	Min uint64 `json:"min"`
	Max uint64 `json:"max"`
}

// Evaluate returns the answer for one expression. It does not panic and takes at most half a minute.
func (e *Environment) Evaluate(expression string, bound *Context) Answer {
	return guarded(expression, func() Answer { return e.evaluate(expression, bound) })
}

// guarded returns an answer for one expression even if evaluate panics or takes too long.
func guarded(expression string, evaluate func() Answer) Answer {
	answers := make(chan Answer, 1)
	go func() {
		defer func() {
			if failure := recover(); failure != nil {
				answers <- Answer{Expr: expression, Failure: fmt.Sprintf("panic: %v", failure)}
			}
		}()
		answers <- evaluate()
	}()
	select {
	case answer := <-answers:
		return answer
	case <-time.After(patience + 10*time.Second):
		return Answer{Expr: expression, Failure: "takes too long"}
	}
}

func (e *Environment) evaluate(expression string, bound *Context) Answer {
	answer := Answer{Expr: expression}
	compiled := e.compile(expression, cel.BoolType)
	if compiled.Error != nil {
		answer.CompileError = compiled.Error.Error()
		// An expression that is not boolean still has a type and may have a value.
		other, found := strings.CutPrefix(answer.CompileError, "must evaluate to bool but got ")
		if !found {
			return answer
		}
		if compiled = e.compile(expression, cel.AnyType); compiled.Error != nil {
			answer.Type = other
			answer.ProgramError = strings.TrimPrefix(compiled.Error.Error(), "program instantiation failed: ")
			return answer
		}
	}
	answer.Type = compiled.OutputType.String()
	estimate, err := e.estimate(expression)
	if err != nil {
		answer.Failure = fmt.Sprintf("estimate: %v", err)
		return answer
	}
	answer.Estimate = estimate

	limited, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	condition := plugincel.NewCondition([]plugincel.CompilationResult{compiled})
	bindings := plugincel.OptionalVariableBindings{Authorizer: &allowed{authorizer.AuthorizerFunc(permissions)}}
	results, left, err := condition.ForInput(limited, bound.attributes, bound.request, bindings, bound.namespace, math.MaxInt64)
	switch {
	case err != nil:
		answer.Failure = err.Error()
		return answer
	case limited.Err() != nil:
		answer.Failure = "takes too long"
		return answer
	}
	cost := uint64(math.MaxInt64 - left)
	answer.Cost = &cost
	if failure := results[0].Error; failure != nil {
		prefix := fmt.Sprintf("expression '%s' resulted in error: ", expression)
		answer.RunError = strings.TrimPrefix(failure.Error(), prefix)
		return answer
	}
	answer.Value = Render(results[0].EvalResult)
	answer.ValueType = results[0].EvalResult.Type().TypeName()
	return answer
}
