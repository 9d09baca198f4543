// The command oracle says what Kubernetes makes of CEL expressions, with Kubernetes' own packages.
//
//	oracle [flags] CONTEXTS <expressions >answers
//
// CONTEXTS is a file such as contexts.json. A line of standard input is an expression, or a JSON object whose members are
// `expr` and, unless the default is meant, `context`: the name of a context of that file. Each line is answered by one
// line of JSON, in the same order; package kubecel says what is in it. Empty lines and those that begin with # are
// skipped.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/admit-dev/admit/tests/cel/kubecel"
)

const (
	longestLine    = 64 << 20
	defaultContext = "update"
)

func main() {
	version := flag.String("kubernetes", "1.37", "the `version` of Kubernetes whose expressions are compiled")
	stored := flag.Bool("stored", false, "compile as expressions in storage, not as new ones")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: oracle [-kubernetes VERSION] [-stored] CONTEXTS")
		os.Exit(2)
	}
	if err := run(*version, *stored, flag.Arg(0), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func run(version string, stored bool, file string, in io.Reader, out io.Writer) error {
	environment, err := kubecel.NewEnvironment(version, stored)
	if err != nil {
		return err
	}
	contexts, err := kubecel.ReadContexts(file)
	if err != nil {
		return err
	}
	// Answers in the order of the questions, as many at the same time as there are processors.
	pending := make(chan chan kubecel.Answer, 2*runtime.NumCPU())
	failed := make(chan error, 1)
	go func() {
		defer close(pending)
		failed <- ask(in, func(question question) error {
			name := question.Context
			if name == "" {
				name = defaultContext
			}
			if contexts[name] == nil {
				return fmt.Errorf("%s has no context %q", file, name)
			}
			answer := make(chan kubecel.Answer, 1)
			pending <- answer
			go func() {
				given := environment.Evaluate(*question.Expr, contexts[name].Fresh())
				given.Context = question.Context
				answer <- given
			}()
			return nil
		})
	}()
	// Whoever asks line by line waits for each answer: only a pause in the answers is worth a write.
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
