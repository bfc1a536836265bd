package train

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/job"
)

// checkHosts looks at where the ranks are, now that all have joined. Unix sockets between
// hosts are an error: they cannot work. Workers that are elsewhere than network.hosts says
// are not, since results do not depend on it: rank 0 warns that algorithms were chosen
// for other machines.
func (m *member) checkHosts(peers []coord.Peer) error {
	for _, p := range peers {
		if m.cfg.Job.Network.Kind == "unix" && p.Host != peers[0].Host {
			return &job.FieldError{Field: "network.kind", Fix: fmt.Sprintf(
				"unix sockets do not reach from %s (rank %d) to %s (rank %d): set network.kind=tcp", peers[0].Host, peers[0].Rank, p.Host, p.Rank)}
		}
	}
	if m.cfg.Rank != 0 {
		return nil
	}
	if text := otherHosts(m.cfg.Job.Network.Hosts, peers[:m.cfg.Job.Strategy.Workers]); text != "" {
		m.cfg.Logger.Warn(text)
	}
	return nil
}

// otherHosts says how workers, in the order of ranks, are on other hosts than a job
// says: "" if they are not. A job that says nothing has one host.
func otherHosts(said []int, workers []coord.Peer) string {
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
