package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every fault still fits: its text stands in its file exactly once, planting it
// changes something, and the test that is to catch it exists. Whether it does
// is for the program to say.
func TestFaultsApply(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	names, plants := map[string]bool{}, map[string]bool{}
	for _, f := range faults() {
		if names[f.name] {
			t.Errorf("two faults are called %q", f.name)
		}
		names[f.name] = true
		key := f.file + "\x00" + f.old + "\x00" + f.new
		if f.old == f.new || plants[key] {
			t.Errorf("%s: plants nothing, or what another plants", f.name)
		}
		plants[key] = true
		if !strings.HasSuffix(f.harm, ".") || strings.Contains(f.name, "\n") {
			t.Errorf("%s: the harm must be a sentence and the name a line", f.name)
		}
		if _, err := f.apply(root); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		if !exists(t, root, f.by) {
			t.Errorf("%s: there is no test %s", f.name, f.by)
		}
	}
}

// exists looks for the catcher's function in its directory.
func exists(t *testing.T, root string, c catcher) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, c.pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	function, _, _ := strings.Cut(c.test, "/")
	head := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(function) + `\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if head.Match(text) {
			return true
		}
	}
	return false
}

// The page lists exactly these faults with their catchers.
func TestPage(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, docPath))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(page(faults()), string(got)); d != "" {
		t.Errorf("%s is out of date; run go run ./internal/cmd/faults -doc (-list +page):\n%s", docPath, d)
	}
}
