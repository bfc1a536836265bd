package crew

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangline/gangline/coord"
)

// OtherHosts says how workers, in the order of ranks, are on other hosts than a job
// says: "" if they are not. A job that says nothing has one host.
func OtherHosts(said []int, workers []coord.Peer) string {
	if len(said) == 0 {
		said = []int{len(workers)}
	}
	var seen []int // workers on each host in turn
	var names []string
	scattered := false
	for i, p := range workers {
		if i > 0 && p.Host == workers[i-1].Host {
			seen[len(seen)-1]++
			continue
		}
		scattered = scattered || slices.Contains(names, p.Host)
		seen, names = append(seen, 1), append(names, p.Host)
	}
	if slices.Equal(said, seen) {
		return ""
	}
	where := make([]string, len(seen))
	for i := range seen {
		where[i] = fmt.Sprintf("%d on %s", seen[i], names[i])
	}
	text := fmt.Sprintf("network.hosts says %v workers a host, but in the order of ranks there are %s: algorithms were chosen for other machines",
		said, strings.Join(where, ", "))
	if scattered {
		return text + "; start the ranks of a host one after the other"
	}
	return fmt.Sprintf("%s; set network.hosts=%s", text, strings.ReplaceAll(fmt.Sprint(seen), " ", ","))
}
