// Writes api-server/src/kinds/common/columns.json; see columns.sh.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/printers/internalversion"
)

type column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format"`
	Description string `json:"description"`
	Priority    int32  `json:"priority"`
}

// tables maps the name of a Go type, which is the name of the kind, to its columns.
type tables map[string][]column

func (t tables) TableHandler(definitions []meta.TableColumnDefinition, print any) error {
	name := reflect.TypeOf(print).In(0).Elem().Name()
	// Lists have the columns of their items.
	if strings.HasSuffix(name, "List") {
		return nil
	}
	var columns []column
	for _, definition := range definitions {
		columns = append(columns, column(definition))
	}
	t[name] = columns
	return nil
}

func main() {
	found := tables{}
	internalversion.AddHandlers(found)
	description := meta.ObjectMeta{}.SwaggerDoc()
	found["default"] = []column{
		{Name: "Name", Type: "string", Format: "name", Description: description["name"]},
		{Name: "Created At", Type: "date", Description: description["creationTimestamp"]},
	}
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	output.SetIndent("", " ")
	if err := output.Encode(found); err != nil {
		panic(err)
	}
}
