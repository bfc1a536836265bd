package crew

import (
	"strings"
	"testing"

	"github.com/gangline/gangline/coord"
)

// on are workers on hosts.
func on(hosts ...string) (peers []coord.Peer) {
	for r, h := range hosts {
		peers = append(peers, coord.Peer{Rank: r, Host: h})
	}
	return peers
}

// A job that says where its workers are is compared with where they are.
func TestOtherHosts(t *testing.T) {
	for _, c := range []struct {
		said    []int
		workers []coord.Peer
		want    []string // nil: nothing is said
	}{
		{nil, on("a", "a"), nil},
		{[]int{2, 1}, on("a", "a", "b"), nil},
		{nil, on("a", "a", "b"), []string{"2 on a, 1 on b", "set network.hosts=[2,1]"}},
		{[]int{1, 2}, on("a", "a", "b"), []string{"says [1 2]", "set network.hosts=[2,1]"}},
		{[]int{2, 2}, on("a", "a", "a", "a"), []string{"4 on a", "set network.hosts=[4]"}},
		{[]int{2, 1}, on("a", "b", "a"), []string{"1 on a, 1 on b, 1 on a", "one after the other"}},
	} {
		text := OtherHosts(c.said, c.workers)
		if (text == "") != (c.want == nil) {
			t.Errorf("%v on %v: %q", c.said, c.workers, text)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%v: %q does not say %q", c.said, text, want)
			}
		}
	}
}
