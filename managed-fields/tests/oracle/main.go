// The command oracle says what Kubernetes makes of managedFields, with Kubernetes' own packages.
//
//	oracle SCHEMAS <questions >answers
//
// SCHEMAS is a file such as schemas.json: schemas of structured-merge-diff by name. A line of standard input is a JSON
// object with the member `ask`, a question. It is answered by a line with the same question and the member `answer`.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
	"sigs.k8s.io/yaml"
)

// A question about sets, about typed values, or about the writes of an object.
type question struct {
	// Sets, as text.
	Set   *string `json:"set,omitempty"`
	Other *string `json:"other,omitempty"`
	// The type of the values, or of the object by version.
	Schema string            `json:"schema,omitempty"`
	Type   string            `json:"type,omitempty"`
	Types  map[string]string `json:"types,omitempty"`
	// Values of the type.
	Old json.RawMessage `json:"old,omitempty"`
	New json.RawMessage `json:"new,omitempty"`
	// The entries of an object and of its Scale, and by version of the object where it has its replicas, if anywhere.
	Parent   []metav1.ManagedFieldsEntry `json:"parent,omitempty"`
	Scale    []metav1.ManagedFieldsEntry `json:"scale,omitempty"`
	Replicas map[string][]string         `json:"replicas,omitempty"`
	// Entries that may be invalid.
	Entries []metav1.ManagedFieldsEntry `json:"entries,omitempty"`
	// The writes of one object.
	Kind   string            `json:"kind,omitempty"`
	Empty  json.RawMessage   `json:"empty,omitempty"`
	Rename map[string]string `json:"rename,omitempty"`
	Writes []write           `json:"writes,omitempty"`
}

// One write of an object. By version, fields that it cannot set, or prefixes of those that it can, with `*` for any step.
type write struct {
	// `update` with a new object, `patch` with a JSON merge patch, `apply`.
	Do          string                `json:"do"`
	By          string                `json:"by"`
	Version     string                `json:"version,omitempty"`
	Subresource string                `json:"subresource,omitempty"`
	Force       bool                  `json:"force,omitempty"`
	Reset       map[string][][]string `json:"reset,omitempty"`
	Include     map[string][][]string `json:"include,omitempty"`
	Object      json.RawMessage       `json:"object"`
}

type line struct {
	Ask    json.RawMessage `json:"ask"`
	Answer any             `json:"answer,omitempty"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: oracle SCHEMAS <questions >answers")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func run(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	schemas := map[string]any{}
	if err := yaml.Unmarshal(text, &schemas); err != nil {
		return err
	}
	parsers := map[string]*typed.Parser{}
	for name, schema := range schemas {
		text, err := yaml.Marshal(schema)
		if err != nil {
			return err
		}
		if parsers[name], err = typed.NewParser(typed.YAMLObject(text)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	out := bufio.NewWriter(os.Stdout)
	for in.Scan() {
		var asked line
		if err := json.Unmarshal(in.Bytes(), &asked); err != nil {
			return fmt.Errorf("%w in %s", err, in.Text())
		}
		var question question
		decoder := json.NewDecoder(bytes.NewReader(asked.Ask))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&question); err != nil {
			return fmt.Errorf("%w in %s", err, in.Text())
		}
		answer, err := question.answer(parsers)
		if err != nil {
			return fmt.Errorf("%w in %s", err, in.Text())
		}
		var encoded bytes.Buffer
		encoder := json.NewEncoder(&encoded)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(answer); err != nil {
			return err
		}
		fmt.Fprintf(out, `{"ask":%s,"answer":%s}`+"\n", asked.Ask, bytes.TrimSpace(encoded.Bytes()))
	}
	if err := in.Err(); err != nil {
		return err
	}
	return out.Flush()
}

func (q *question) answer(parsers map[string]*typed.Parser) (any, error) {
	switch {
	case len(q.Writes) > 0:
		return q.written(parsers[q.Schema])
	case q.Entries != nil:
		answer := map[string]string{}
		if err := managedfields.ValidateManagedFields(q.Entries); err != nil {
			answer["error"] = err.Error()
		}
		return answer, nil
	case q.Replicas != nil:
		return q.scaled(), nil
	case q.Type != "":
		of := typed.DeducedParseableType
		if q.Type != "deduced" {
			of = parsers[q.Schema].Type(q.Type)
		}
		return q.typed(of)
	default:
		return q.sets(), nil
	}
}

func set(text string) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	err := set.FromJSON(strings.NewReader(text))
	return set, err
}

func encoded(set *fieldpath.Set) string {
	text, err := set.ToJSON()
	if err != nil {
		return "error: " + err.Error()
	}
	return string(text)
}

func (q *question) sets() map[string]any {
	one, err := set(*q.Set)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	answer := map[string]any{
		"set":    encoded(one),
		"paths":  one.String(),
		"leaves": encoded(one.Leaves()),
		"len":    one.Size(),
	}
	if q.Other != nil {
		other, err := set(*q.Other)
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		answer["union"] = encoded(one.Union(other))
		answer["intersection"] = encoded(one.Intersection(other))
		answer["difference"] = encoded(one.Difference(other))
		answer["recursiveDifference"] = encoded(one.RecursiveDifference(other))
	}
	return answer
}

func decoded(text json.RawMessage) (any, error) {
	var value any
	err := kjson.UnmarshalCaseSensitivePreserveInts(text, &value)
	return value, err
}

// What the types make of one value or two: `old` is what may have duplicates.
func (q *question) typed(of typed.ParseableType) (any, error) {
	answer := map[string]any{}
	raw, err := decoded(q.New)
	if err != nil {
		return nil, err
	}
	checked, err := of.FromUnstructured(raw)
	if err != nil {
		answer["error"] = err.Error()
		return answer, nil
	}
	fields, err := checked.ToFieldSet()
	if err != nil {
		answer["fieldsError"] = err.Error()
		return answer, nil
	}
	answer["fields"] = encoded(fields)
	if q.Set != nil {
		items, err := set(*q.Set)
		if err != nil {
			return nil, err
		}
		answer["removed"] = plain(checked.RemoveItems(items))
		answer["extracted"] = plain(checked.ExtractItems(items))
	}
	if q.Old == nil {
		return answer, nil
	}
	if raw, err = decoded(q.Old); err != nil {
		return nil, err
	}
	old, err := of.FromUnstructured(raw, typed.AllowDuplicates)
	if err != nil {
		answer["oldError"] = err.Error()
		return answer, nil
	}
	if merged, err := old.Merge(checked); err != nil {
		answer["mergeError"] = err.Error()
	} else {
		answer["merged"] = plain(merged)
	}
	if changes, err := old.Compare(checked); err != nil {
		answer["compareError"] = err.Error()
	} else {
		answer["changes"] = map[string]string{
			"removed":  encoded(changes.Removed),
			"modified": encoded(changes.Modified),
			"added":    encoded(changes.Added),
		}
	}
	if fields, err := old.ToFieldSet(); err == nil {
		answer["oldFields"] = encoded(fields)
	}
	return answer, nil
}

func plain(typed *typed.TypedValue) any {
	if typed.AsValue() == nil {
		return nil
	}
	return value.Value(typed.AsValue()).Unstructured()
}
