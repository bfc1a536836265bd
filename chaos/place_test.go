//go:build unix

package chaos

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// others are the launchers that start ranks without a word of ours, by the variables
// that they set on one host.
func others(rank, world int, address string) map[string][]string {
	host, port, _ := net.SplitHostPort(address)
	r, n := fmt.Sprint(rank), fmt.Sprint(world)
	return map[string][]string{
		"shell": {"RANK=" + r, "WORLD_SIZE=" + n, "MASTER_ADDR=" + host, "MASTER_PORT=" + port},
		"srun": {
			"SLURM_JOB_ID=" + port, "SLURM_STEP_ID=0", "SLURM_STEP_NUM_NODES=1", "SLURM_PROCID=" + r, "SLURM_NTASKS=" + n,
		},
		"mpirun": {
			"OMPI_COMM_WORLD_RANK=" + r, "OMPI_COMM_WORLD_SIZE=" + n, "OMPI_COMM_WORLD_LOCAL_SIZE=" + n, "PMIX_NAMESPACE=" + port,
		},
	}
}

// TestJoinedByOthers proves that a job trains where others start its ranks on one
// host, with no variable of ours, and ends like under our launcher.
func TestJoinedByOthers(t *testing.T) {
	b := newBench(t)
	writeLines(b)
	s := specOf("ctr-ps")
	want := launchedSHA(b, s)
	for name := range others(0, 1, "") {
		all := b.joinAll(func(rank, world int, address string) []string { return others(rank, world, address)[name] }, s, "checkpoint.every=0")
		if got := all[0].result().ParamsSHA256; got != want {
			t.Errorf("%s: parameters %s, launched %s", name, got, want)
		}
		for _, p := range all {
			if status := p.wait(); status != 0 {
				t.Errorf("%s of %s: exit status %d:\n%s", p.name, name, status, tail(p.log.String()))
			}
		}
	}
}

// TestExampleCollective proves that the program of a user joins however it is started:
// by our launcher, by others, and by Open MPI itself where that is installed.
func TestExampleCollective(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "collective")
	if err := build(exe, "../examples/collective"); err != nil {
		t.Fatal(err)
	}
	b := newBenchOf(t, exe)
	address := freeAddress(t)
	for name := range others(0, 1, "") {
		var all []*process
		for rank := range 3 {
			all = append(all, b.start(fmt.Sprintf("%s rank %d", name, rank), others(rank, 3, address)[name], "no argument counts"))
		}
		var said []string
		for _, p := range all {
			if status := p.wait(); status != 0 {
				t.Errorf("%s: exit status %d", p.name, status)
			}
			said = append(said, p.log.String())
		}
		checkSums(t, name, strings.Join(said, ""), 3)
	}

	cmd := exec.Command(program, "launch", "-n", "4", "--", exe)
	cmd.Env = environ()
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("launch: %v", err)
	}
	checkSums(t, "launch", string(out), 4)

	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		t.Skip("no mpirun here: the rest is not tried")
	}
	cmd = exec.Command(mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "2", exe)
	cmd.Env = environ()
	if out, err = cmd.CombinedOutput(); err != nil {
		t.Errorf("mpirun: %v\n%s", err, out)
	}
	checkSums(t, "mpirun itself", string(out), 2)
}

// checkSums wants one right line of every rank.
func checkSums(t *testing.T, name, out string, n int) {
	t.Helper()
	got := regexp.MustCompile(`rank \d+ of \d+: \[.*\]`).FindAllString(out, -1)
	slices.Sort(got)
	var want []string
	for rank := range n {
		want = append(want, fmt.Sprintf("rank %d of %d: [%d %d]", rank, n, n*(n-1)/2, n))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", name, got, want)
	}
}
