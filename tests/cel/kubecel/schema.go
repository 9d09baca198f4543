package kubecel

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// selfType is the prefix of the type name of self. The API server adds a different suffix each time.
const selfType = "selfType"

var numberedSelfType = regexp.MustCompile(selfType + `\d+`)

// schemaDescription is a schema in the format of the file, with the documents on which rules are evaluated.
type schemaDescription struct {
	Schema apiextensionsv1.JSONSchemaProps `json:"schema"`
	// Whether this is the schema of a whole resource.
	Root      bool                                  `json:"root"`
	Documents map[string]map[string]json.RawMessage `json:"documents"`
}

// Schema contains what is needed to compile and evaluate the rules of one schema.
type Schema struct {
	structural *schema.Structural
	declared   *apiservercel.DeclType
	base       *environment.EnvSet
	env        *cel.Env
	documents  map[string]map[string]any
}

// ReadSchemas reads a file that maps names to schemas.
func ReadSchemas(file, kubernetes string) (map[string]*Schema, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	descriptions := map[string]schemaDescription{}
	if err := json.Unmarshal(text, &descriptions); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	parsed, err := version.ParseGeneric(kubernetes)
	if err != nil {
		return nil, err
	}
	base := environment.MustBaseEnvSet(parsed)
	schemas := map[string]*Schema{}
	for name, description := range descriptions {
		made, err := description.schema(base)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", file, name, err)
		}
		schemas[name] = made
	}
	return schemas, nil
}

func (d *schemaDescription) schema(base *environment.EnvSet) (*Schema, error) {
	internal := apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&d.Schema, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	documents := map[string]map[string]any{}
	for name, variables := range d.Documents {
		documents[name] = map[string]any{}
		for variable, text := range variables {
			var value any
			if err := utiljson.Unmarshal(text, &value); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, variable, err)
			}
			documents[name][variable] = value
		}
	}
	declared := model.SchemaDeclType(structural, d.Root)
	if declared == nil {
		return nil, fmt.Errorf("it is not exposed")
	}
	if d.Root {
		structural = model.WithTypeAndObjectMeta(structural)
	}
	named := declared.MaybeAssignTypeName(selfType)
	extended, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable(schemacel.ScopedVarName, named.CelType()),
			cel.Variable(schemacel.OldScopedVarName, named.CelType()),
		},
		DeclTypes: []*apiservercel.DeclType{named},
	})
	if err != nil {
		return nil, err
	}
	env, err := extended.Env(environment.NewExpressions)
	if err != nil {
		return nil, err
	}
	return &Schema{structural, declared, base, env, documents}, nil
}

// sizes returns the sizes of the values of a schema, as estimates for the rules of custom resources use them.
type sizes struct{ root *apiservercel.DeclType }

func (s *sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if len(element.Path()) == 0 {
		return nil
	}
	at := s.root
	for _, name := range element.Path()[1:] {
		switch name {
		case "@items", "@values":
			at = at.ElemType
		case "@keys":
			at = at.KeyType
		default:
			field, found := at.Fields[name]
			if !found {
				return nil
			}
			at = field.Type
		}
		if at == nil {
			return nil
		}
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(at.MaxElements)}
}

func (s *sizes) EstimateCallCost(_, _ string, _ *checker.AstNode, _ []checker.AstNode) *checker.CallEstimate {
	return nil
}

// EvaluateRule returns the answer for one expression on self and oldSelf of a document. It does not panic and takes at
// most half a minute.
func (s *Schema) EvaluateRule(expression, document string) Answer {
	return guarded(expression, func() Answer { return s.evaluate(expression, document) })
}

func (s *Schema) evaluate(expression, document string) Answer {
	answer := Answer{Expr: expression}
	bound, found := s.documents[document]
	if !found {
		answer.Failure = fmt.Sprintf("there is no document %q", document)
		return answer
	}
	estimator := &library.CostEstimator{SizeEstimator: &sizes{s.declared}}
	ast, issues := s.env.Compile(expression)
	if issues.Err() != nil {
		answer.CompileError = "compilation failed: " + issues.String()
		return s.confirm(answer)
	}
	answer.Type = ast.OutputType().String()
	if ast.OutputType() != cel.BoolType {
		answer.CompileError = "cel expression must evaluate to a bool"
	}
	program, err := s.env.Program(ast,
		cel.CostLimit(celconfig.PerCallLimit), cel.CostTracking(estimator),
		cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		if answer.CompileError != "" {
			answer.ProgramError = err.Error()
			return s.confirm(answer)
		}
		answer.Type = ""
		answer.CompileError = "program instantiation failed: " + err.Error()
		return s.confirm(answer)
	}
	estimate, err := s.env.EstimateCost(ast, estimator)
	if err != nil {
		answer.Failure = fmt.Sprintf("estimate: %v", err)
		return answer
	}
	answer.Estimate = &Estimate{Min: estimate.Min, Max: estimate.Max}
	if answer = s.confirm(answer); answer.Failure != "" {
		return answer
	}
	variables := map[string]any{}
	for name, value := range bound {
		variables[name] = schemacel.UnstructuredToVal(value, s.structural)
	}
	limited, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	value, details, err := program.ContextEval(limited, variables)
	switch {
	case limited.Err() != nil:
		answer.Failure = "takes too long"
		return answer
	case details != nil:
		answer.Cost = details.ActualCost()
	}
	if err != nil {
		answer.RunError = err.Error()
		return answer
	}
	answer.Value, answer.ValueType = Render(value), value.Type().TypeName()
	return answer
}

// confirm compiles the expression with the compiler of custom resources, too, and reports any difference. That compiler
// does not export its environment and estimator, and returns nothing for an expression that is not boolean.
func (s *Schema) confirm(answer Answer) Answer {
	withRule := *s.structural
	withRule.XValidations = apiextensionsv1.ValidationRules{{Rule: answer.Expr}}
	results, err := schemacel.Compile(
		&withRule, s.declared, celconfig.PerCallLimit, s.base, schemacel.NewExpressionsEnvLoader())
	if err != nil {
		answer.Failure = fmt.Sprintf("Compile: %v", err)
		return answer
	}
	result, failure := results[0], ""
	if result.Error != nil {
		failure = numberedSelfType.ReplaceAllString(result.Error.Detail, selfType)
	}
	switch {
	case failure == "" && result.Program == nil: // an empty rule, which is not compiled
	case failure != answer.CompileError:
		answer.Failure = fmt.Sprintf("Compile: the error is %q, not %q", failure, answer.CompileError)
	case failure == "" && result.MaxCost != answer.Estimate.Max:
		answer.Failure = fmt.Sprintf("Compile: the cost is at most %d, not %d", result.MaxCost, answer.Estimate.Max)
	}
	return answer
}
