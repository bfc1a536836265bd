package stream

import "testing"

// Every path is found by its word, and no other is.
func TestParsePath(t *testing.T) {
	for p := Auto; p <= TCP; p++ {
		if got, err := ParsePath(p.String()); err != nil || got != p {
			t.Errorf("%v: %v, %v", p, got, err)
		}
	}
	if _, err := ParsePath("path 4"); err == nil {
		t.Error("a path that is none")
	}
}
