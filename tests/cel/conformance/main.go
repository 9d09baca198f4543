// The command conformance runs the CEL conformance tests with Kubernetes' own packages.
//
//	conformance FOLDER >tests
//
// FOLDER is tests/simple/testdata of the module cel.dev/expr. Each test becomes a line of JSON, see type line.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cel.dev/expr"
	_ "cel.dev/expr/conformance/proto2" // the messages that some tests use
	_ "cel.dev/expr/conformance/proto3"
	"cel.dev/expr/conformance/test"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"google.golang.org/protobuf/encoding/prototext"

	"example.com/admit/tests/cel/kubecel"
)

const kubernetes = "1.37"

// line is a test with the result of Kubernetes.
type line struct {
	// FILE/SECTION/TEST
	Name string `json:"name"`
	// The container in which names are resolved.
	Container string `json:"container,omitempty"`
	// The types of the variables, as cel-go writes types, and their values.
	Variables map[string]string `json:"variables,omitempty"`
	Bindings  map[string]any    `json:"bindings,omitempty"`
	// The functions that the test declares.
	Functions []string `json:"functions,omitempty"`
	// What the test expects.
	Expected expectation `json:"expected"`
	// Why the test cannot be run as specified; if set, there is no reason.
	Skipped string `json:"skipped,omitempty"`
	// Why the result of Kubernetes differs from the expectation; the answer is the actual result.
	Reason string         `json:"reason,omitempty"`
	Answer kubecel.Answer `json:"answer"`
}

// expectation has a value, an error, a type, or a value and a type.
type expectation struct {
	Value any    `json:"value,omitempty"`
	Type  string `json:"type,omitempty"`
	Error string `json:"error,omitempty"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: conformance FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.textproto"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no tests in %s", folder)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		read := &test.SimpleTestFile{}
		if err := prototext.Unmarshal(text, read); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, section := range read.GetSection() {
			for _, given := range section.GetTest() {
				answered, err := answer(given)
				if err != nil {
					answered.Skipped = err.Error()
				}
				answered.Name = strings.Join([]string{read.GetName(), section.GetName(), given.GetName()}, "/")
				fmt.Printf("%s\n", kubecel.JSON(answered))
			}
		}
	}
	return nil
}

// answer runs a test. It returns an error if the test cannot be run at all.
func answer(given *test.SimpleTest) (line, error) {
	answered := line{Container: given.GetContainer(), Answer: kubecel.Answer{Expr: given.GetExpr()}}
	options := []cel.EnvOption{cel.Container(given.GetContainer())}
	for _, declaration := range given.GetTypeEnv() {
		option, err := cel.ProtoAsDeclaration(declaration)
		if err != nil {
			return answered, err
		}
		options = append(options, option)
		if ident := declaration.GetIdent(); ident != nil {
			declared, err := types.ProtoAsType(ident.GetType())
			if err != nil {
				return answered, err
			}
			if answered.Variables == nil {
				answered.Variables = map[string]string{}
			}
			answered.Variables[declaration.GetName()] = declared.String()
		} else {
			answered.Functions = append(answered.Functions, declaration.GetName())
		}
	}
	env, err := kubecel.Standalone(kubernetes, options...)
	if err != nil {
		return answered, err
	}
	bound := map[string]any{}
	for name, binding := range given.GetBindings() {
		value, err := cel.ProtoAsValue(env.CELTypeAdapter(), binding.GetValue())
		if err != nil {
			return answered, fmt.Errorf("variable %s: %w", name, err)
		}
		if types.IsError(value) {
			return answered, fmt.Errorf("variable %s: %v", name, value)
		}
		if answered.Bindings == nil {
			answered.Bindings = map[string]any{}
		}
		bound[name], answered.Bindings[name] = value, kubecel.Render(value)
	}
	answered.Answer = kubecel.EvaluateIn(env, given.GetExpr(), bound)
	if answered.Expected, err = expected(env, given); err != nil {
		return answered, err
	}
	if given.GetDisableCheck() && answered.Answer.CompileError != "" {
		return answered, errors.New("asks for evaluation without type checking")
	}
	// This program has the messages of the tests; the API server does not.
	if strings.HasPrefix(answered.Answer.RunError, "unknown type: 'cel.expr.conformance.") {
		return answered, errors.New("a message of the tests")
	}
	if given.GetDisableMacros() {
		return answered, errors.New("asks for no macros")
	}
	answered.Reason = difference(given, answered.Expected, answered.Answer)
	return answered, nil
}

func expected(env *cel.Env, given *test.SimpleTest) (expectation, error) {
	switch matcher := given.GetResultMatcher().(type) {
	case nil:
		return expectation{Value: kubecel.Render(types.True)}, nil
	case *test.SimpleTest_Value:
		value, err := rendered(env, matcher.Value)
		return expectation{Value: value}, err
	case *test.SimpleTest_TypedResult:
		deduced, err := types.ProtoAsType(matcher.TypedResult.GetDeducedType())
		if err != nil {
			return expectation{}, err
		}
		if given.GetCheckOnly() {
			return expectation{Type: deduced.String()}, nil
		}
		value, err := rendered(env, matcher.TypedResult.GetResult())
		return expectation{Value: value, Type: deduced.String()}, err
	case *test.SimpleTest_EvalError:
		return expectation{Error: messages(matcher.EvalError)}, nil
	case *test.SimpleTest_AnyEvalErrors:
		return expectation{Error: messages(matcher.AnyEvalErrors.GetErrors()...)}, nil
	default:
		return expectation{}, fmt.Errorf("expects an unknown value")
	}
}

func rendered(env *cel.Env, value *expr.Value) (any, error) {
	read, err := cel.ProtoAsValue(env.CELTypeAdapter(), value)
	if err != nil {
		return nil, err
	}
	if types.IsError(read) {
		return nil, fmt.Errorf("expects %v", read)
	}
	return kubecel.Render(read), nil
}

func messages(sets ...*expr.ErrorSet) string {
	found := []string{}
	for _, set := range sets {
		for _, status := range set.GetErrors() {
			found = append(found, status.GetMessage())
		}
	}
	return strings.Join(found, "; ")
}

// difference returns how the result of Kubernetes differs from what a test expects, or nothing.
func difference(given *test.SimpleTest, expected expectation, answer kubecel.Answer) string {
	value := func(value any) []byte { return kubecel.JSON(value) }
	switch {
	case expected.Error != "" && (answer.CompileError != "" || answer.ProgramError != "" || answer.RunError != ""):
		return ""
	case answer.CompileError != "":
		first, _, _ := strings.Cut(answer.CompileError, "\n")
		return strings.TrimPrefix(first, "compilation failed: ")
	case answer.ProgramError != "":
		return "program instantiation failed: " + answer.ProgramError
	case expected.Type != "" && expected.Type != answer.Type:
		return fmt.Sprintf("the type is %s", answer.Type)
	case given.GetCheckOnly():
		return ""
	case answer.RunError != "":
		return answer.RunError
	case !bytes.Equal(value(answer.Value), value(expected.Value)):
		return fmt.Sprintf("the value is %s", value(answer.Value))
	}
	return ""
}
