// Command compare runs suites that start envtest, on admit's stand-ins and on the real binaries, and prints which specs end
// differently.
//
//	go run ./compare -admit DIR [-real DIR] [PACKAGE...]
//
// Packages are of controller-runtime, such as webhook, or an operator's, such as jobset; without any, all. Without -real all
// specs are to pass. The exit status is 1 if something differs that differences.txt does not list, or if something listed there is the
// same.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

const module = "sigs.k8s.io/controller-runtime"

// operators are the packages with the webhooks' specs of operators; their versions stand in operators/go.mod.
var operators = map[string]string{
	"jobset": "sigs.k8s.io/jobset/test/integration/webhook",
	"keda":   "github.com/kedacore/keda/v2/apis/keda/v1alpha1",
	"lws":    "sigs.k8s.io/lws/test/integration/webhooks",
}

// packages are those of controller-runtime whose specs start envtest, and that pass with the real binaries.
var packages = []string{
	"builder", "cache", "client", "cluster", "controller", "controller/controllerutil", "envtest", "handler",
	"internal/controller", "internal/recorder", "manager", "source", "webhook",
}

// passed is how a spec is to end.
var passed = types.SpecStatePassed.String()

// spec is the package, the texts of a spec, and which of several with the same texts it is.
type spec struct {
	pkg, text string
	number    int
}

func (s spec) String() string {
	if s.number > 0 {
		return fmt.Sprintf("%s: %s (%d)", s.pkg, s.text, s.number+1)
	}
	return fmt.Sprintf("%s: %s", s.pkg, s.text)
}

func main() {
	admit := flag.String("admit", "", "the folder that `admit assets` prints")
	real := flag.String("real", "", "the folder with the real etcd and kube-apiserver; without it all specs are to pass")
	differences := flag.String("differences", "differences.txt", "the specs that are known to differ")
	flag.Parse()
	chosen := flag.Args()
	if len(chosen) == 0 {
		chosen = append(slices.Clone(packages), slices.Sorted(maps.Keys(operators))...)
	}
	differing, err := compare(*admit, *real, *differences, chosen)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(3)
	}
	if differing {
		os.Exit(1)
	}
}

func compare(admit, real, differences string, chosen []string) (bool, error) {
	if admit == "" {
		return false, errors.New("-admit is missing")
	}
	known, err := readKnown(differences)
	if err != nil {
		return false, err
	}
	scratch, err := os.MkdirTemp("", "admit-suites-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(scratch)
	ours, theirs := map[spec]string{}, map[spec]string{}
	for _, pkg := range chosen {
		program := filepath.Join(scratch, strings.ReplaceAll(pkg, "/", "_")+".test")
		folder, err := build(pkg, program)
		if err != nil {
			return false, err
		}
		if err := run(program, folder, admit, scratch, pkg, ours); err != nil {
			return false, err
		}
		if real == "" {
			continue
		}
		if err := run(program, folder, real, scratch, pkg, theirs); err != nil {
			return false, err
		}
		// Not every spec can be attempted again on the same server, where its first attempt has left objects.
		failsThere := func(name spec) bool { return theirs[name] != passed && ours[name] == passed }
		if names := slices.Collect(maps.Keys(theirs)); slices.ContainsFunc(names, failsThere) {
			again := map[spec]string{}
			if err := run(program, folder, real, scratch, pkg, again); err != nil {
				return false, err
			}
			for name, end := range again {
				if failsThere(name) && end == passed {
					fmt.Printf("passed on kube-apiserver when it was run again: %s\n", name)
					theirs[name] = end
				}
			}
		}
	}
	return report(ours, theirs, known, real != ""), nil
}

// build makes the test program of a package, and returns the folder in which it runs.
func build(pkg, program string) (string, error) {
	path, pins := module+"/pkg/"+pkg, "."
	if operator, isOperator := operators[pkg]; isOperator {
		path, pins = operator, "operators"
	}
	list := exec.Command("go", "list", "-f", "{{.Dir}}", path)
	list.Dir, list.Stderr = pins, os.Stderr
	folder, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", pkg, err)
	}
	compile := exec.Command("go", "test", "-trimpath", "-c", "-o", program, path)
	compile.Dir, compile.Env = pins, append(os.Environ(), "CGO_ENABLED=0")
	compile.Stdout, compile.Stderr = os.Stderr, os.Stderr
	if err := compile.Run(); err != nil {
		return "", fmt.Errorf("%s: %w", pkg, err)
	}
	return strings.TrimSpace(string(folder)), nil
}

// run runs the specs on the binaries of a folder, and notes how each ended. Some wait for a second and no longer, which a
// busy machine does not always keep: such a spec has three attempts.
func run(program, folder, assets, scratch, pkg string, ends map[spec]string) error {
	file := filepath.Join(scratch, "report.json")
	// A report of the package before would be taken for this one.
	if err := os.RemoveAll(file); err != nil {
		return err
	}
	command := exec.Command(program, "-ginkgo.json-report="+file, "-ginkgo.flake-attempts=3", "-test.timeout=10m")
	command.Dir = folder
	command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets)
	// Which specs failed is in the report.
	printed, _ := command.CombinedOutput()
	bytes, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s: no report of its specs:\n%s", pkg, printed)
	}
	var reports []types.Report
	if err := json.Unmarshal(bytes, &reports); err != nil {
		return fmt.Errorf("%s: %w", pkg, err)
	}
	count := 0
	for _, report := range reports {
		for _, it := range report.SpecReports {
			if it.LeafNodeType != types.NodeTypeIt {
				if it.Failed() {
					return fmt.Errorf("%s: %s failed: %s", pkg, it.LeafNodeType, it.FailureMessage())
				}
				continue
			}
			if it.State == types.SpecStatePending || it.State == types.SpecStateSkipped {
				continue
			}
			name := spec{pkg: pkg, text: strings.Join(strings.Fields(it.FullText()), " ")}
			for _, isThere := ends[name]; isThere; _, isThere = ends[name] {
				name.number++
			}
			ends[name] = it.State.String()
			count++
		}
	}
	if count == 0 {
		return fmt.Errorf("%s: no specs ran:\n%s", pkg, printed)
	}
	fmt.Fprintf(os.Stderr, "%s: %d specs on %s\n", pkg, count, assets)
	return nil
}

// readKnown reads the specs that are known to differ: one a line, but for comments.
func readKnown(path string) (map[string]bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	known := map[string]bool{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "#") {
			known[line] = true
		}
	}
	return known, lines.Err()
}

// report prints what differs, and says whether something does that is not known, or is known and does not.
func report(ours, theirs map[spec]string, known map[string]bool, hasReal bool) bool {
	names := slices.SortedFunc(maps.Keys(ours), func(a, b spec) int { return strings.Compare(a.String(), b.String()) })
	passing, same, isNews := 0, 0, false
	for _, name := range names {
		expected := passed
		if hasReal {
			expected = theirs[name]
		}
		if ours[name] == passed {
			passing++
		}
		switch isKnown := known[name.String()]; {
		case ours[name] == expected:
			same++
			if isKnown {
				isNews = true
				fmt.Printf("no longer differs: %s\n", name)
			}
		case isKnown:
			fmt.Printf("differs, as is known: %s: %s, where kube-apiserver has %s\n", name, ours[name], expected)
		default:
			isNews = true
			fmt.Printf("differs: %s: %s, where kube-apiserver has %s\n", name, ours[name], expected)
		}
	}
	for name := range theirs {
		if _, isThere := ours[name]; !isThere {
			isNews = true
			fmt.Printf("did not run: %s\n", name)
		}
	}
	fmt.Printf("%d of %d specs pass on admit, %d end the same\n", passing, len(ours), same)
	return isNews
}
