package train

import (
	"log/slog"
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

// Rank 0 warns, once for all; only sockets that cannot reach end the job.
func TestCheckHosts(t *testing.T) {
	for _, c := range []struct {
		rank   int
		kind   string
		warns  bool
		refuse string
	}{{0, "tcp", true, ""}, {1, "tcp", false, ""}, {0, "unix", false, "set network.kind=tcp"}} {
		var log strings.Builder
		m := &member{cfg: Config{Rank: c.rank, Logger: slog.New(slog.NewTextHandler(&log, nil))}}
		m.cfg.Job.Network.Kind, m.cfg.Job.Strategy.Workers = c.kind, 2
		err := m.checkHosts(on("a", "b"))
		if (err == nil) != (c.refuse == "") || err != nil && !strings.Contains(err.Error(), c.refuse) {
			t.Errorf("rank %d, %s: %v", c.rank, c.kind, err)
		}
		if got := strings.Contains(log.String(), "WARN"); got != c.warns {
			t.Errorf("rank %d, %s: %q", c.rank, c.kind, log.String())
		}
	}
}
