package linediff

import "testing"

func TestOf(t *testing.T) {
	for _, c := range []struct{ was, is, want string }{
		{"a\nb\nc\n", "a\nd\nc\n", "  was b\n  is  d"},
		{"a\n", "a\n", ""},
		{"", "x\n", "  is  x"},
		{"x", "", "  was x"},
	} {
		if got := Of(c.was, c.is); got != c.want {
			t.Errorf("%q to %q: %q, want %q", c.was, c.is, got, c.want)
		}
	}
}
