// The command oracle evaluates CEL expressions with Kubernetes' own packages.
//
//	oracle [flags] CONTEXTS SCHEMAS <expressions >answers
//
// CONTEXTS is a file such as contexts.json. A line of standard input is an expression, or a JSON object with the members
// `expr` and, unless it uses the default, `context`: the name of a context in that file. With a member `schema`, the
// expression is a rule of the schema of that name in the file SCHEMAS, such as schemas.json, and `context` names one of
// its documents. Each line produces one line of JSON, in the same order; package kubecel describes its format. Empty lines
// and lines that start with # are skipped.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	"example.com/admit/tests/cel/kubecel"
)

const (
	longestLine     = 64 << 20
	defaultContext  = "update"
	defaultDocument = "usual"
)

func main() {
	version := flag.String("kubernetes", "1.37", "the `version` of Kubernetes whose expressions are compiled")
	stored := flag.Bool("stored", false, "compile as expressions in storage, not as new ones")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: oracle [-kubernetes VERSION] [-stored] CONTEXTS SCHEMAS")
		os.Exit(2)
	}
	if err := run(*version, *stored, flag.Arg(0), flag.Arg(1), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func run(version string, stored bool, file, schemaFile string, in io.Reader, out io.Writer) error {
	environment, err := kubecel.NewEnvironment(version, stored)
	if err != nil {
		return err
	}
	contexts, err := kubecel.ReadContexts(file)
	if err != nil {
		return err
	}
	schemas, err := kubecel.ReadSchemas(schemaFile, version)
	if err != nil {
		return err
	}
	evaluate := func(question question) (func() kubecel.Answer, error) {
		if question.Schema != "" {
			rules := schemas[question.Schema]
			if rules == nil {
				return nil, fmt.Errorf("%s has no schema %q", schemaFile, question.Schema)
			}
			document := cmp.Or(question.Context, defaultDocument)
			return func() kubecel.Answer { return rules.EvaluateRule(*question.Expr, document) }, nil
		}
		bound := contexts[cmp.Or(question.Context, defaultContext)]
		if bound == nil {
			return nil, fmt.Errorf("%s has no context %q", file, question.Context)
		}
		return func() kubecel.Answer { return environment.Evaluate(*question.Expr, bound.Fresh()) }, nil
	}
	// Answers are printed in the order of the input, and as many are computed in parallel as there are processors.
	pending := make(chan chan kubecel.Answer, 2*runtime.NumCPU())
	failed := make(chan error, 1)
	go func() {
		defer close(pending)
		failed <- ask(in, func(question question) error {
			evaluation, err := evaluate(question)
			if err != nil {
				return err
			}
			answer := make(chan kubecel.Answer, 1)
			pending <- answer
			go func() {
				given := evaluation()
				given.Schema, given.Context = question.Schema, question.Context
				answer <- given
			}()
			return nil
		})
	}()
	// A client that sends one line at a time waits for each answer, so a pause in the answers flushes the output.
	writer := bufio.NewWriter(out)
	for answer := range pending {
		if _, err := writer.Write(append(kubecel.JSON(<-answer), '\n')); err != nil {
			return err
		}
		if len(pending) == 0 {
			if err := writer.Flush(); err != nil {
				return err
			}
		}
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	return <-failed
}

type question struct {
	Expr    *string `json:"expr"`
	Schema  string  `json:"schema"`
	Context string  `json:"context"`
}

func ask(in io.Reader, each func(question) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		asked := question{}
		if json.Unmarshal([]byte(line), &asked) != nil || asked.Expr == nil {
			asked = question{Expr: &line}
		}
		if err := each(asked); err != nil {
			return err
		}
	}
	return lines.Err()
}
