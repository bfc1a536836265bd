package chaos

import (
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// outerAddress is an address of this machine that is not its loopback.
func outerAddress(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but its loopback")
	return ""
}

// TestDataAddress proves that ranks listen for data where they reach the
// coordinator from, so that ranks of other hosts reach them.
func TestDataAddress(t *testing.T) {
	b := newBench(t)
	writeLines(b)
	host := outerAddress(t)
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	s, address := specOf("table-ps"), net.JoinHostPort(host, port) // over tcp
	var all []*process
	for rank := range s.world() - 1 {
		all = append(all, b.join(plainEnv, s, rank, address, "checkpoint.every=0"))
	}
	all[0].await(`joined, 3 of 4`)
	for rank, p := range all {
		for _, at := range listening(t, p.cmd.Process.Pid) {
			if !strings.HasPrefix(at, host+":") {
				t.Errorf("rank %d listens at %s, the coordinator is at %s", rank, at, address)
			}
		}
	}
	all = append(all, b.join(plainEnv, s, s.world()-1, address, "checkpoint.every=0"))
	all[0].result()
	for _, p := range all {
		if status := p.wait(); status != 0 {
			t.Errorf("%s: exit status %d:\n%s", p.name, status, tail(p.log.String()))
		}
	}
}

// TestSocketsBetweenHosts proves that ranks on two hosts are told at once that
// unix sockets do not reach that far. The second host is a name.
func TestSocketsBetweenHosts(t *testing.T) {
	b := newBench(t)
	writeLines(b)
	cmd := exec.Command("sh", "-c", "hostname elsewhere")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("another name for a process cannot be set here: %v %s", err, out)
	}
	s, address := specOf("ctr-allreduce"), freeAddress(t)
	here := b.join(plainEnv, s, 0, address, endless()...)
	there := b.startAs("rank 1 elsewhere", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS}, plainEnv(1, 2, address),
		trainArgs(s.write(b), endless()...), "sh", "-c", `hostname elsewhere && exec "$0" "$@"`, b.exe)
	for _, p := range []*process{here, there} {
		p.checkVerdict(1, `network.kind: unix sockets do not reach from \S+ \(rank 0\) to elsewhere \(rank 1\): set network.kind=tcp`)
	}
}
