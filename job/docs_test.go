package job_test

import (
	"encoding"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/job"
)

// docs/job.md has every field once, and every default.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/job.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\| (.*?)\\| .* \\|$").FindAllStringSubmatch(string(text), -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			name = strings.Trim(name, "`")
			if _, twice := documented[name]; twice {
				t.Errorf("%s stands there twice", name)
			}
			documented[name] = strings.Trim(row[2], "` ")
		}
	}
	defaults := map[string]string{}
	d := job.Default()
	fields(reflect.ValueOf(d), "", defaults)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(defaults)), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Fatalf("fields of a job (-) and of docs/job.md (+):\n%s", diff)
	}
	for name, want := range defaults {
		got := documented[name]
		if got != want && (got != "" || want != "0" && want != "[]" && want != "map[]") && name != "network.kind" {
			t.Errorf("docs/job.md says that %s is %q by default, it is %q", name, got, want)
		}
	}
}

// fields collects the fields below v; those of data.eval are those of data.train.
func fields(v reflect.Value, path string, into map[string]string) {
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct {
		fields(reflect.Zero(v.Type().Elem()), path+"[]", into) // and the list itself:
	}
	if v.Kind() != reflect.Struct {
		text := fmt.Sprint(v.Interface())
		if m, ok := reflect.TypeAssert[encoding.TextMarshaler](v); ok {
			b, _ := m.MarshalText()
			text = string(b)
		}
		into[path] = text
		return
	}
	for f := range v.Type().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		at := strings.TrimPrefix(path+"."+name, ".")
		if at != "data.eval" && name != "-" {
			fields(v.FieldByIndex(f.Index), at, into)
		}
	}
}

// The job that docs/job.md begins with can be read.
func TestDocsExample(t *testing.T) {
	text, err := os.ReadFile("../docs/job.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	if example == nil {
		t.Fatal("there is no example")
	}
	if _, err := job.Parse("job.md", example[1], nil); err != nil {
		t.Error(err)
	}
}
