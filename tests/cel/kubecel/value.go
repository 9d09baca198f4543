package kubecel

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// Render returns a value as a JSON object with one member, whose name is the type:
//
//	{"null": null}  {"bool": true}  {"int": "3"}  {"uint": "3"}  {"double": "1.5"}  {"string": "a"}  {"bytes": BASE64}
//	{"timestamp": RFC3339}  {"duration": NANOSECONDS}  {"type": NAME}  {"list": [VALUE, ...]}
//	{"map": [[KEY, VALUE], ...]}, sorted by the JSON of the keys
//	{"optional": null}  {"optional": VALUE}
//	{"url": TEXT}  {"quantity": TEXT}  {"ip": TEXT}  {"cidr": TEXT}  {"semver": TEXT}  {"format": NAME}
//	{"error": TEXT}, for an element that cannot be read
//	{"object": TYPE}, for everything else
func Render(value ref.Val) any {
	switch value := value.(type) {
	case types.Null:
		return one("null", nil)
	case types.Bool:
		return one("bool", bool(value))
	case types.Int:
		return one("int", strconv.FormatInt(int64(value), 10))
	case types.Uint:
		return one("uint", strconv.FormatUint(uint64(value), 10))
	case types.Double:
		return one("double", strconv.FormatFloat(float64(value), 'g', -1, 64))
	case types.String:
		return one("string", string(value))
	case types.Bytes:
		return one("bytes", base64.StdEncoding.EncodeToString(value))
	case types.Timestamp:
		return one("timestamp", value.UTC().Format(time.RFC3339Nano))
	case types.Duration:
		return one("duration", strconv.FormatInt(value.Nanoseconds(), 10))
	case *types.Optional:
		if !value.HasValue() {
			return one("optional", nil)
		}
		return one("optional", Render(value.GetValue()))
	case *types.Err:
		return one("error", value.Error())
	case *types.Type:
		return one("type", value.TypeName())
	case apiservercel.URL:
		return one("url", value.String())
	case apiservercel.Quantity:
		return one("quantity", value.String())
	case *apiservercel.Quantity: // a calculated quantity
		return one("quantity", value.String())
	case apiservercel.IP:
		return one("ip", value.Addr.String())
	case apiservercel.CIDR:
		return one("cidr", value.Prefix.String())
	case apiservercel.Semver:
		return one("semver", value.String())
	case apiservercel.Format:
		return one("format", value.Name)
	case traits.Mapper:
		return one("map", entries(value))
	case traits.Lister:
		return one("list", elements(value))
	default:
		return one("object", value.Type().TypeName())
	}
}

func one(name string, value any) map[string]any {
	return map[string]any{name: value}
}

func elements(list traits.Lister) []any {
	rendered := []any{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		rendered = append(rendered, Render(it.Next()))
	}
	return rendered
}

func entries(mapper traits.Mapper) [][2]any {
	rendered := [][2]any{}
	for it := mapper.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		if key == nil { // a member that is not in the schema of the object
			continue
		}
		rendered = append(rendered, [2]any{Render(key), Render(mapper.Get(key))})
	}
	slices.SortFunc(rendered, func(a, b [2]any) int { return bytes.Compare(JSON(a[0]), JSON(b[0])) })
	return rendered
}

// JSON encodes a value without HTML escapes.
func JSON(value any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("%T is no JSON: %v", value, err))
	}
	return bytes.TrimSpace(text.Bytes())
}
