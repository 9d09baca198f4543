package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// comparison is the JSON of `upstream compare`: medians of all rounds.
type comparison struct {
	Dispatch map[string]pair[measured] `json:"dispatch"`
	Requests map[string]pair[served]   `json:"requests"`
}

type pair[T any] struct {
	Upstream T `json:"upstream"`
	Admit    T `json:"admit"`
}

// compare measures both sides by turns, each on the same core, and prints a table.
func compare(given arguments) error {
	folder, err := os.MkdirTemp("", "benches")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var dispatches, requests [2][]string
	for round := range given.rounds {
		file := func(kind string) string { return filepath.Join(folder, fmt.Sprintf("%s-%d.json", kind, round)) }
		upstream, admit := file("dispatch-upstream"), file("dispatch-admit")
		runs := [2]*exec.Cmd{
			pinned(given.cpu, self, "dispatch", "-benches", given.benches, "-names", given.names, "-time", given.time.String(), "-json", upstream),
			pinned(given.cpu, given.benches, "run", given.names, "--time", strconv.FormatInt(given.time.Milliseconds(), 10), "--json", admit),
		}
		dispatches[0], dispatches[1] = append(dispatches[0], upstream), append(dispatches[1], admit)
		// Neither side is always the first.
		for turn := range runs {
			if err := run(runs[(turn+round)%2]); err != nil {
				return err
			}
		}
	}
	for round := range given.rounds {
		for turn := range 2 {
			side := (turn + round) % 2
			name := [2]string{"kube", "admit"}[side]
			file := filepath.Join(folder, fmt.Sprintf("requests-%s-%d.json", name, round))
			requests[side] = append(requests[side], file)
			err := run(exec.Command(self, "requests", "-server", name, "-benches", given.benches, "-admit", given.admit,
				"-assets", given.assets, "-cpu", given.cpu, "-client-cpu", given.clientCPU,
				"-creates", strconv.Itoa(given.creates), "-json", file))
			if err != nil {
				return err
			}
		}
	}
	var result comparison
	if result.Dispatch, err = medians(dispatches, func(m measured) float64 { return m.CPUP50 }); err != nil {
		return err
	}
	if result.Requests, err = medians(requests, func(s served) float64 { return s.CPU }); err != nil {
		return err
	}
	fmt.Print(result.markdown())
	return writeJSON(given.json, result)
}

func run(command *exec.Cmd) error {
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(command.Args, " "), err)
	}
	return nil
}

// medians of the rounds, by key, of what both sides measured.
func medians[T any](files [2][]string, key func(T) float64) (map[string]pair[T], error) {
	var sides [2]map[string]T
	for side, files := range files {
		all := map[string][]T{}
		for _, file := range files {
			var results map[string]T
			if err := readJSON(file, &results); err != nil {
				return nil, err
			}
			for name, result := range results {
				all[name] = append(all[name], result)
			}
		}
		sides[side] = map[string]T{}
		for name, results := range all {
			sort.Slice(results, func(a, b int) bool { return key(results[a]) < key(results[b]) })
			sides[side][name] = results[len(results)/2]
		}
	}
	both := map[string]pair[T]{}
	for name, upstream := range sides[0] {
		if admit, measured := sides[1][name]; measured {
			both[name] = pair[T]{upstream, admit}
		}
	}
	return both, nil
}

func (c comparison) markdown() string {
	var text strings.Builder
	text.WriteString("| CPU time and allocations of one dispatch | upstream | admit | times |\n|---|---|---|---|\n")
	for _, name := range sorted(c.Dispatch) {
		upstream, admit := c.Dispatch[name].Upstream, c.Dispatch[name].Admit
		fmt.Fprintf(&text, "| %s | %s, %.0f | %s, %.0f | %.1f |\n", strings.TrimPrefix(name, "dispatch/"),
			span(upstream.CPUP50), upstream.Allocations, span(admit.CPUP50), admit.Allocations, upstream.CPUP50/admit.CPUP50)
	}
	text.WriteString("\n| Requests: a second, CPU time of the server each, resident | kube-apiserver and etcd | `admit serve` | CPU, times |\n|---|---|---|---|\n")
	for _, name := range sorted(c.Requests) {
		upstream, admit := c.Requests[name].Upstream, c.Requests[name].Admit
		side := func(s served) string {
			return fmt.Sprintf("%.0f, %s, %d MB", s.Rate, span(s.CPU), s.Resident/1_000_000)
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %.1f |\n", strings.TrimPrefix(name, "requests/"),
			side(upstream), side(admit), upstream.CPU/admit.CPU)
	}
	return text.String()
}

func sorted[T any](results map[string]T) []string {
	names := make([]string, 0, len(results))
	for name := range results {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
