package kubecel

import (
	"context"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// Standalone returns an environment with the functions that new expressions have in a version of Kubernetes, and with other
// variables than admission.
func Standalone(kubernetes string, options ...cel.EnvOption) (*cel.Env, error) {
	parsed, err := version.ParseGeneric(kubernetes)
	if err != nil {
		return nil, err
	}
	extended, err := environment.MustBaseEnvSet(parsed).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        options,
	})
	if err != nil {
		return nil, err
	}
	return extended.Env(environment.NewExpressions)
}

// EvaluateIn returns the answer for one expression of any type, with these values of variables.
func EvaluateIn(env *cel.Env, expression string, variables map[string]any) Answer {
	answer := Answer{Expr: expression}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		answer.CompileError = "compilation failed: " + issues.String()
		return answer
	}
	answer.Type = ast.OutputType().String()
	program, err := env.Program(ast)
	if err != nil {
		answer.ProgramError = err.Error()
		return answer
	}
	if estimate, err := env.EstimateCost(ast, &library.CostEstimator{}); err == nil {
		answer.Estimate = &Estimate{Min: estimate.Min, Max: estimate.Max}
	}
	limited, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	value, details, err := program.ContextEval(limited, variables)
	answer.Cost = details.ActualCost()
	if err != nil {
		answer.RunError = err.Error()
		return answer
	}
	answer.Value, answer.ValueType = Render(value), value.Type().TypeName()
	return answer
}
