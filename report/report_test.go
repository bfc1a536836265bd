package report

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// docs/report.md names every field that a report can have.
func TestReportDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/report.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	jsonNames(reflect.TypeFor[Report](), names)
	if len(names) < 40 {
		t.Fatalf("a report has %d fields only", len(names))
	}
	for name := range names {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/report.md does not tell of %q", name)
		}
	}
}

// jsonNames collects what the fields below t are called in JSON.
func jsonNames(t reflect.Type, into map[string]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[Main]() { // which a report takes apart
		return
	}
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "main" {
			into[name] = true
		}
		jsonNames(f.Type, into)
	}
}
