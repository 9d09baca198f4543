// Package kubecel compiles and evaluates expressions as the admission of kube-apiserver does, with its own packages.
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

// Environment compiles expressions of one version of Kubernetes, either new ones or those in storage.
type Environment struct {
	compiler plugincel.Compiler
	mode     environment.Type
	// The same environment once more: the compiler of admission keeps its own to itself, and estimates need one.
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

// accessor is an expression as admission wants it.
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

// estimate returns what the expression costs at least and at most, as the API server estimates it for the rules of
// custom resources. Nothing bounds the size of a variable here.
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
