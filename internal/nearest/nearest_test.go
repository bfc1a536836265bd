package nearest

import "testing"

func TestHint(t *testing.T) {
	known := []string{"strategy", "workers", "servers"}
	for word, want := range map[string]string{
		"stratgy":  `: did you mean "strategy"? There are strategy, workers, servers`,
		"Servers":  `: did you mean "servers"? There are strategy, workers, servers`,
		"zzzzzzzz": `: there are strategy, workers, servers`,
	} {
		if got := Hint(word, known); got != want {
			t.Errorf("Hint(%q) = %s, want %s", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 2}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
