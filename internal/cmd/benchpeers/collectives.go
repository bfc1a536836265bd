package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/gangline/gangline/bench/comm"
)

// duel is an all-reduce of ours beside those of others, over one path.
type duel struct {
	name  string
	ranks int
	path  string // ours
	peers []rival
}

// rival is a program of the other side.
type rival struct {
	name string
	args func(c *config, ranks int) []string
	env  []string
}

// duels are what is compared: sizes are those of the peer programs.
func duels() []duel {
	shm := rival{name: "Open MPI, shared memory", args: mpi("self,vader")}
	tcp := rival{name: "Open MPI, tcp", args: mpi("self,tcp")}
	// Number 5 is the segmented ring of Open MPI's tuned collectives.
	seg := rival{name: "Open MPI, tcp, segmented ring", args: mpi("self,tcp",
		"--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", "5")}
	gloo := rival{name: "gloo", args: func(c *config, ranks int) []string {
		return []string{c.python, filepath.Join(c.dir, "torch_allreduce.py"), strconv.Itoa(ranks)}
	}}
	return []duel{
		{"shm2", 2, "shm", []rival{shm}},
		{"tcp2", 2, "tcp", []rival{tcp, seg}},
		{"gloo2", 2, "tcp", []rival{gloo}},
		{"shm4", 4, "shm", []rival{shm}},
	}
}

// mpi starts the peer program of MPI. More ranks than cores must be asked for.
func mpi(btl string, more ...string) func(c *config, ranks int) []string {
	return func(c *config, ranks int) []string {
		args := []string{"mpirun", "--allow-run-as-root", "-n", strconv.Itoa(ranks), "--mca", "btl", btl}
		if ranks > runtime.NumCPU() {
			args = append(args, "--oversubscribe")
		}
		return slices.Concat(args, more, []string{c.mpi})
	}
}

// prepareMPI compiles the peer program, as its users would.
func (c *config) prepareMPI(ctx context.Context, dir string) error {
	for _, tool := range []string{"mpicc", "mpirun"} {
		if _, err := exec.LookPath(tool); err != nil {
			return absentError(tool + " is not here (Debian: openmpi-bin, libopenmpi-dev)")
		}
	}
	c.mpi = filepath.Join(dir, "mpi_allreduce")
	_, err := output(ctx, nil, "mpicc", "-O3", "-march=native", "-o", c.mpi, filepath.Join(c.dir, "mpi_allreduce.c"))
	return err
}

// collectives prints a table a duel.
func (c *config) collectives(ctx context.Context, only []string, out io.Writer) error {
	for _, d := range duels() {
		if !slices.Contains(only, d.name) {
			continue
		}
		fmt.Fprintf(out, "\n%s: %d ranks, float32, in place, ours over %s\n\n", d.name, d.ranks, d.path)
		if err := c.fight(ctx, d, out); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
	}
	return nil
}

// fight measures a duel in turns. Of several rivals the fastest of a round counts.
func (c *config) fight(ctx context.Context, d duel, out io.Writer) error {
	pairs := map[int][]pair{}
	for round := range c.rounds {
		var ours map[int]float64
		peer := map[int]float64{}
		sides := []func() error{func() (err error) { ours, err = c.oursOf(ctx, d); return err }}
		for _, r := range d.peers {
			sides = append(sides, func() error { return c.rivalOf(ctx, d, r, peer) })
		}
		if round%2 == 1 {
			slices.Reverse(sides)
		}
		for _, side := range sides {
			if err := side(); err != nil {
				return err
			}
		}
		for bytes, t := range ours {
			if peer[bytes] <= 0 {
				return fmt.Errorf("no time of %s for %d bytes", d.peers[0].name, bytes)
			}
			pairs[bytes] = append(pairs[bytes], pair{t, peer[bytes]})
		}
	}
	fmt.Fprintf(out, "| bytes | gangline, ms | %s, ms | gangline/peer, %d pairs | median |\n|---|---|---|---|---|\n", rivals(d.peers), c.rounds)
	for _, bytes := range sizes() {
		fmt.Fprintln(out, row(strconv.Itoa(bytes), pairs[bytes]))
	}
	return nil
}

// rivals names the other side.
func rivals(peers []rival) string {
	names := make([]string, len(peers))
	for i, r := range peers {
		names[i] = r.name
	}
	if len(names) > 1 {
		return "the better of " + strings.Join(names, " and ")
	}
	return names[0]
}

// sizes are those of the peer programs.
func sizes() []int { return []int{4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20} }

// oursOf times gangline: seconds by size.
func (c *config) oursOf(ctx context.Context, d duel) (map[int]float64, error) {
	var list []string
	for _, s := range sizes() {
		list = append(list, strconv.Itoa(s))
	}
	text, err := output(ctx, nil, c.gangline, "bench", "collective", "--op", "allreduce", "--json",
		"--ranks", strconv.Itoa(d.ranks), "--path", d.path, "--bytes", strings.Join(list, ","))
	if err != nil {
		return nil, err
	}
	var results []comm.Result
	if err := json.Unmarshal(text, &results); err != nil {
		return nil, fmt.Errorf("gangline bench collective: %w", err)
	}
	times := map[int]float64{}
	for _, r := range results {
		times[r.Bytes] = r.Median / 1e6
	}
	return times, nil
}

// rivalOf times a program of the other side and keeps what is faster than before.
func (c *config) rivalOf(ctx context.Context, d duel, r rival, best map[int]float64) error {
	text, err := output(ctx, r.env, r.args(c, d.ranks)...)
	if err != nil {
		return err
	}
	for bytes, t := range parseAllReduce(string(text)) {
		if was, ok := best[bytes]; !ok || t < was {
			best[bytes] = t
		}
	}
	return nil
}

// parseAllReduce reads seconds by size from what the peer programs print:
//
//	allreduce NAME ranks=2 bytes=4096 iters=2000 median_us=4.9 ...
func parseAllReduce(text string) map[int]float64 {
	line := regexp.MustCompile(`(?m)^allreduce .*\bbytes=(\d+) .*\bmedian_us=([0-9.]+)`)
	times := map[int]float64{}
	for _, m := range line.FindAllStringSubmatch(text, -1) {
		bytes, err := strconv.Atoi(m[1])
		us, err2 := strconv.ParseFloat(m[2], 64)
		if err == nil && err2 == nil {
			times[bytes] = us / 1e6
		}
	}
	return times
}
