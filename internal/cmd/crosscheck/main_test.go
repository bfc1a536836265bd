package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A name that only one system has is an error on the others, and no error on it.
func TestOtherSystems(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":     "module example.com/m\n\ngo 1.26\n",
		"m.go":       "package m\n\nimport \"os\"\n\nfunc F() (int, error) { return g(), os.ErrClosed }\n",
		"g_linux.go": "package m\n\nfunc g() int { return 1 << 20 }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run(dir, "", []string{"linux/arm64"}, &out); err != nil || !strings.Contains(out.String(), "linux/arm64: ") {
		t.Errorf("%v, %q", err, out.String())
	}
	err := run(dir, "", []string{"windows/amd64", "darwin/arm64"}, &out)
	if err == nil || strings.Count(err.Error(), "undefined: g") != 2 || !strings.Contains(err.Error(), "windows/amd64") {
		t.Errorf("got %v", err)
	}
	if err := run(dir, "", []string{"plan9"}, &out); err == nil {
		t.Error("no error for half a system")
	}
}
