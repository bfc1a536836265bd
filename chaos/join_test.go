//go:build unix

package chaos

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/transport/sock"
)

// token is what the ranks of joined jobs share.
const token = "a token that these tests share"

// place is the environment of a rank that something else than gangline starts.
type place func(rank, world int, address string) []string

// plainEnv is the launch contract itself.
func plainEnv(rank, world int, address string) []string {
	return []string{
		fmt.Sprintf("GANGLINE_RANK=%d", rank), fmt.Sprintf("GANGLINE_WORLD_SIZE=%d", world),
		"GANGLINE_ADDRESS=" + address, "GANGLINE_TOKEN=" + token,
	}
}

// freeAddress is one on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// join starts one rank of a job.
func (b *bench) join(env place, s spec, rank int, address string, settings ...string) *process {
	b.t.Helper()
	return b.start(fmt.Sprintf("%s rank %d", s.name, rank), env(rank, s.world(), address), trainArgs(s.write(b), settings...)...)
}

// joinAll starts all ranks of a job, the last one first.
func (b *bench) joinAll(env place, s spec, settings ...string) []*process {
	b.t.Helper()
	address, all := freeAddress(b.t), make([]*process, s.world())
	for rank := s.world() - 1; rank >= 0; rank-- {
		all[rank] = b.join(env, s, rank, address, settings...)
	}
	return all
}

// launchedSHA is what the launcher's ranks end with.
func launchedSHA(b *bench, s spec) string {
	b.t.Helper()
	return b.train("launched "+s.name, s.write(b), "checkpoint.every=0").result().ParamsSHA256
}

// TestJoined proves that ranks started by others end like those of the launcher.
func TestJoined(t *testing.T) {
	b := newBench(t)
	writeLines(b)
	for _, tc := range []struct {
		job string
		env place
	}{
		{"table-ps", plainEnv},
		{"ctr-allreduce", func(rank, world int, address string) []string {
			return []string{
				fmt.Sprintf("OMPI_COMM_WORLD_RANK=%d", rank), fmt.Sprintf("OMPI_COMM_WORLD_SIZE=%d", world),
				"GANGLINE_ADDRESS=" + address, "GANGLINE_TOKEN=" + token,
			}
		}},
		{"ctr-ps", func(rank, world int, address string) []string {
			return []string{
				"SLURM_JOB_ID=7", fmt.Sprintf("SLURM_PROCID=%d", rank), fmt.Sprintf("SLURM_NTASKS=%d", world),
				"GANGLINE_ADDRESS=" + address, "GANGLINE_TOKEN=" + token,
			}
		}},
		{"logistic-allreduce", func(rank, world int, address string) []string {
			host, port, _ := net.SplitHostPort(address)
			return []string{
				fmt.Sprintf("RANK=%d", rank), fmt.Sprintf("WORLD_SIZE=%d", world),
				"MASTER_ADDR=" + host, "MASTER_PORT=" + port, "GANGLINE_TOKEN=" + token,
			}
		}},
	} {
		s := specOf(tc.job)
		want := launchedSHA(b, s)
		all := b.joinAll(tc.env, s, "checkpoint.every=0")
		if got := all[0].result().ParamsSHA256; got != want {
			t.Errorf("%s: parameters %s, launched %s", s.name, got, want)
		}
		for _, p := range all {
			if status := p.wait(); status != 0 {
				t.Errorf("%s: exit status %d:\n%s", p.name, status, tail(p.log.String()))
			}
		}
	}
}

// TestJoinedRankIsKilled proves that without a launcher, too, all others end, with
// an error that names the rank.
func TestJoinedRankIsKilled(t *testing.T) {
	for _, victim := range []int{0, 1, 2} {
		b := newBench(t)
		writeLines(b)
		all := b.joinAll(plainEnv, specOf("ctr-ps"), endless()...)
		all[0].await(`step [1-9]`)
		begin := time.Now()
		all[victim].signal(9)
		for rank, p := range all {
			switch {
			case rank == victim:
			case victim == 0: // who coordinates
				p.checkVerdict(1, `^gangline: .*rank 0`)
			default:
				p.checkVerdict(1, fmt.Sprintf(`^gangline: .*rank %d`, victim))
			}
			if took := time.Since(begin); took > endLimit {
				t.Errorf("%s took %v to end", p.name, took)
			}
		}
	}
}

// TestBusyAddress proves that a coordinator's address that is taken is told.
func TestBusyAddress(t *testing.T) {
	b := newBench(t)
	writeLines(b)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p := b.join(plainEnv, specOf("ctr-ps"), 0, ln.Addr().String(), endless()...)
	p.checkVerdict(1, `^gangline: rank 0 cannot coordinate at `+ln.Addr().String()+`: .*address already in use`)
}

// TestWrongPlaces proves that an environment that makes no sense is a wrong
// request.
func TestWrongPlaces(t *testing.T) {
	b := newBench(t)
	writeLines(b)
	s := specOf("ctr-ps")
	for _, tc := range []struct {
		env  []string
		says string
	}{
		{[]string{"GANGLINE_RANK=0", "GANGLINE_ADDRESS=127.0.0.1:1"}, `GANGLINE_RANK is set, but GANGLINE_WORLD_SIZE is not`},
		{[]string{"GANGLINE_RANK=4", "GANGLINE_WORLD_SIZE=4", "GANGLINE_ADDRESS=127.0.0.1:1", "GANGLINE_TOKEN=x"}, `GANGLINE_RANK is "4", it must be a number from 0 to 3`},
		{[]string{"GANGLINE_RANK=1", "GANGLINE_WORLD_SIZE=4", "GANGLINE_ADDRESS=127.0.0.1", "GANGLINE_TOKEN=x"}, `GANGLINE_ADDRESS is "127.0.0.1", it must be host:port`},
		{[]string{"GANGLINE_RANK=1", "GANGLINE_WORLD_SIZE=4", "GANGLINE_ADDRESS=192.0.2.1:1"}, `GANGLINE_TOKEN is not set`},
		{plainEnv(1, 3, "127.0.0.1:1"), `job: strategy.workers: the job has 4 ranks \(2 workers, 2 servers\), but the world size is 3 \(from GANGLINE_WORLD_SIZE\)`},
	} {
		p := b.start("wrong place", tc.env, trainArgs(s.write(b), endless()...)...)
		p.checkVerdict(2, "^gangline: "+tc.says)
	}
}

// TestDifferentJobs proves that ranks that were started with different jobs are
// told so, before the first step.
func TestDifferentJobs(t *testing.T) {
	b := newBench(t)
	writeLines(b)
	s, address := specOf("ctr-allreduce"), freeAddress(t)
	all := []*process{
		b.join(plainEnv, s, 0, address, endless()...),
		b.join(plainEnv, s, 1, address, append(endless(), "optimizer.lr=0.02")...),
	}
	for _, p := range all {
		p.checkVerdict(1, `the ranks' plans differ: rank 0 has plan [0-9a-f]+, rank 1 has plan [0-9a-f]+; all ranks need the same job, data and program`)
	}
}

// TestMissingRank proves that a rank that never comes is named.
func TestMissingRank(t *testing.T) {
	b := newBench(t)
	writeLines(b)
	s, address := specOf("mlp-ps"), freeAddress(t)
	settings := append(endless(), "network.join_timeout=1s")
	for _, p := range []*process{b.join(plainEnv, s, 0, address, settings...), b.join(plainEnv, s, 1, address, settings...)} {
		p.checkVerdict(1, `rank 2 of 3 did not join within 1s`)
	}
}

// TestStrangers proves that who does not know the token changes nothing, at the
// coordinator's port and at those for data, and is named.
func TestStrangers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the ports of another process are looked up in /proc")
	}
	b := newBench(t)
	writeLines(b)
	s, address := specOf("mlp-ps"), freeAddress(t)
	settings := []string{"checkpoint.every=0", "network.kind=tcp"}
	want := launchedSHA(b, s)
	all := []*process{b.join(plainEnv, s, 0, address, settings...), b.join(plainEnv, s, 1, address, settings...)}
	all[0].await(`joined, 2 of 3`) // both listen for data and wait for rank 2

	_, err := coord.Join(t.Context(), coord.JoinConfig{Address: address, Token: "only a guess", Rank: 2, World: 3, Role: "server", Timeout: patience})
	if err == nil {
		t.Error("the coordinator took in a stranger")
	}
	shout(t, address)
	ports := 0
	for rank, p := range all {
		for _, port := range listening(t, p.cmd.Process.Pid) {
			if port != address {
				shout(t, port)
				strangerDials(t, port, rank)
				ports++
			}
		}
	}
	if ports != 2 {
		t.Errorf("two ranks listen for data at %d ports", ports)
	}
	all = append(all, b.join(plainEnv, s, 2, address, settings...))
	if got := all[0].result().ParamsSHA256; got != want {
		t.Errorf("parameters %s, without strangers %s", got, want)
	}
	all[0].checkSays(`refused a stranger: wrong or missing token" address=127.0.0.1`, `refused a connection.*rank=0.*127.0.0.1:\d+.*token`)
	all[1].checkSays(`refused a connection.*rank=1.*127.0.0.1:\d+.*token`)
	for _, p := range all {
		if status := p.wait(); status != 0 {
			t.Errorf("%s: exit status %d:\n%s", p.name, status, tail(p.log.String()))
		}
	}
}

// shout sends what no rank would, and hangs up when it is answered or cut off.
func shout(t *testing.T, address string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: here\r\n\r\n")); err != nil {
		t.Error(err)
	}
}

// strangerDials tries a whole handshake with a wrong token, as rank 2.
func strangerDials(t *testing.T, address string, rank int) {
	t.Helper()
	l, err := sock.Listen(sock.Config{
		Network: "tcp", Address: "127.0.0.1:0", Rank: 2, World: 3, Generation: 1, Token: "only a guess", DialTimeout: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addresses := []string{"", "", l.Addr()}
	addresses[rank] = address
	if _, err := l.Connect(t.Context(), addresses, []int{rank}); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("rank %d answered a stranger with %v", rank, err)
	}
}

// listening returns the TCP addresses at which a process listens.
func listening(t *testing.T, pid int) []string {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	sockets := map[string]bool{}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil {
			sockets[target] = true
		}
	}
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	if err != nil {
		t.Fatal(err)
	}
	// sl local_address rem_address st ... uid timeout inode; state 0A listens.
	row := regexp.MustCompile(`(?m)^\s*\d+: ([0-9A-F]{8}):([0-9A-F]{4}) \S+ 0A(?: +\S+){5} +(\d+)`)
	var out []string
	for _, m := range row.FindAllStringSubmatch(string(table), -1) {
		if !sockets["socket:["+m[3]+"]"] {
			continue
		}
		ip, err := strconv.ParseUint(m[1], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		port, err := strconv.ParseUint(m[2], 16, 16)
		if err != nil {
			t.Fatal(err)
		}
		host := make(net.IP, 4)
		binary.NativeEndian.PutUint32(host, uint32(ip)) // as the kernel printed it
		out = append(out, net.JoinHostPort(host.String(), strconv.FormatUint(port, 10)))
	}
	return out
}
