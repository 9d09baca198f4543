// Package kubecel compiles and evaluates expressions like admission in kube-apiserver, with Kubernetes' own packages.
package kubecel

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// Environment compiles expressions of one version of Kubernetes, either new or stored ones.
type Environment struct {
	compiler plugincel.Compiler
	mode     environment.Type
	// A copy of the environment for estimates, because the admission compiler does not export its own.
	env *cel.Env
}

// NewEnvironment returns the environment of a version such as "1.37".
func NewEnvironment(kubernetes string, stored bool) (*Environment, error) {
	parsed, err := version.ParseGeneric(kubernetes)
	if err != nil {
		return nil, err
	}
	mode := environment.NewExpressions
	if stored {
		mode = environment.StoredExpressions
	}
	base := environment.MustBaseEnvSet(parsed)
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	extended, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable(plugincel.ObjectVarName, cel.DynType),
			cel.Variable(plugincel.OldObjectVarName, cel.DynType),
			cel.Variable(plugincel.NamespaceVarName, namespace.CelType()),
			cel.Variable(plugincel.RequestVarName, request.CelType()),
			cel.Variable(plugincel.AuthorizerVarName, library.AuthorizerType),
			cel.Variable(plugincel.RequestResourceAuthorizerVarName, library.ResourceCheckType),
		},
		DeclTypes: []*apiservercel.DeclType{namespace, request},
	})
	if err != nil {
		return nil, fmt.Errorf("declaring the variables of admission: %w", err)
	}
	env, err := extended.Env(mode)
	if err != nil {
		return nil, err
	}
	return &Environment{compiler: plugincel.NewCompiler(base), mode: mode, env: env}, nil
}

// accessor is an expression in the form that admission requires.
type accessor struct {
	expression string
	result     *cel.Type
}

func (a *accessor) GetExpression() string    { return a.expression }
func (a *accessor) ReturnTypes() []*cel.Type { return []*cel.Type{a.result} }

func (e *Environment) compile(expression string, result *cel.Type) plugincel.CompilationResult {
	variables := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	return e.compiler.CompileCELExpression(&accessor{expression, result}, variables, e.mode)
}

// estimate returns the minimum and maximum cost of the expression, as the API server estimates it for the rules of
// custom resources. The size of variables is not bounded here.
func (e *Environment) estimate(expression string) (*Estimate, error) {
	ast, issues := e.env.Compile(expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	estimate, err := e.env.EstimateCost(ast, &library.CostEstimator{})
	if err != nil {
		return nil, err
	}
	return &Estimate{Min: estimate.Min, Max: estimate.Max}, nil
}
