// Upstream in the situations of the package `benches`, measured in the same way: `just bench-upstream`.
//
//	upstream dispatch -benches FILE -json FILE            k8s.io/apiserver's dispatcher, in this process
//	upstream requests -server kube|admit … -json FILE     requests to a server in a process of its own
//	upstream compare -benches FILE -admit FILE -json FILE all of it, on both sides by turns, as one table
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

// arguments of all subcommands; each reads those that it needs.
type arguments struct {
	benches, admit, assets, server, json string
	cpu, clientCPU                       string
	names                                string
	rounds, creates                      int
	time                                 time.Duration
}

func main() {
	commands := map[string]func(arguments) error{"dispatch": dispatch, "requests": requests, "compare": compare}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: upstream dispatch|requests|compare [flags]")
		os.Exit(2)
	}
	var given arguments
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	flags.StringVar(&given.benches, "benches", "target/dist/benches", "the benchmarks of admit, which also have the webhook")
	flags.StringVar(&given.admit, "admit", "target/dist/admit", "the command admit")
	flags.StringVar(&given.assets, "assets", os.Getenv("KUBEBUILDER_ASSETS"), "the folder of etcd and kube-apiserver")
	flags.StringVar(&given.server, "server", "admit", "requests: kube or admit")
	flags.StringVar(&given.json, "json", "", "write the results to this file, as JSON")
	flags.StringVar(&given.cpu, "cpu", "0", "the core of what is measured")
	flags.StringVar(&given.clientCPU, "client-cpu", "1", "the core of clients and webhook while a server is measured")
	flags.StringVar(&given.names, "names", "dispatch/", "compare: the benchmarks of both sides that are run")
	flags.IntVar(&given.rounds, "rounds", 3, "compare: how often each side is measured")
	flags.IntVar(&given.creates, "creates", 5000, "requests: how many objects are created")
	flags.DurationVar(&given.time, "time", 500*time.Millisecond, "how long each benchmark runs")
	// ExitOnError: never an error here.
	_ = flags.Parse(os.Args[2:])
	if err := commands[os.Args[1]](given); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func writeJSON(file string, value any) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

func readJSON(file string, value any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, value)
}
