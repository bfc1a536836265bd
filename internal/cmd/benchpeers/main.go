// Command benchpeers times training steps of gangline and of PyTorch in turns, on
// the same cores, and prints the ratios of each pair. Absolute times of a shared
// machine do not carry over from one minute to the next; pairs do.
//
//	go run ./internal/cmd/benchpeers [-rounds 7] [-threads 1] [-case sgemm,mlp,gpt,ctr,dlrm] [-dir DIR]
//	go run ./internal/cmd/benchpeers -collective [-rounds 7] [-case shm2,tcp2,gloo2,shm4] [-dir DIR]
//	go run ./internal/cmd/benchpeers -ddp [-rounds 7] [-dir DIR] [-data DIR]
//
// The programs of the other side are in -dir: torch_step.py and torch_dlrm.py;
// with -collective, mpi_allreduce.c and torch_allreduce.py; with -ddp, torch_ddp.py, and
// the digits to train on in -data. Without them, or without
// PyTorch or Open MPI, it says so and ends well.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/cpu"

	"github.com/gangline/gangline/bench"
)

// group is cases that one run of the other program times.
type group struct {
	name  string
	cases []string // ours
	file  string
	args  []string // after the number of threads
}

func groups() []group {
	return []group{
		{"sgemm", []string{"sgemm512", "sgemm1024"}, "torch_step.py", []string{"gemm"}},
		{"mlp", []string{"mlp"}, "torch_step.py", []string{"mlp"}},
		{"gpt", []string{"gpt"}, "torch_step.py", []string{"gpt"}},
		{"ctr", []string{"ctr"}, "torch_step.py", []string{"ctrs"}},
		{"dlrm", []string{"dlrm"}, "torch_dlrm.py", nil},
	}
}

func main() {
	var c config
	var only string
	flag.BoolVar(&c.collective, "collective", false, "time all-reduce beside Open MPI and gloo instead of training steps")
	flag.BoolVar(&c.ddp, "ddp", false, "time data-parallel training over two ranks beside PyTorch's, and what fusion gains")
	flag.StringVar(&c.data, "data", "../shared/data", "directory of the digits (-ddp)")
	flag.StringVar(&c.dir, "dir", "../shared/bench", "directory of the other side's programs")
	flag.StringVar(&c.python, "python", "/usr/bin/python3", "Python with PyTorch")
	flag.IntVar(&c.rounds, "rounds", 7, "pairs of each case")
	flag.IntVar(&c.threads, "threads", 1, "cores of either side")
	flag.StringVar(&only, "case", "sgemm,mlp,gpt,ctr,dlrm,shm2,tcp2,gloo2,shm4", "which cases")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := c.run(ctx, strings.Split(only, ","), os.Stdout)
	stop()
	if why, ok := errors.AsType[absentError](err); ok {
		fmt.Println("benchpeers: skipped:", why)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchpeers:", err)
		os.Exit(1)
	}
}

// absentError says that there is nothing to compare with.
type absentError string

// Error implements error.
func (e absentError) Error() string { return string(e) }

type config struct {
	dir, python     string
	rounds, threads int
	collective, ddp bool
	data            string
	gangline        string   // our program
	mpi             string   // theirs, compiled
	pin             []string // what is put before a command to pin it
}

// pair is one measurement of either side, in seconds a step.
type pair struct{ ours, peer float64 }

func (c *config) run(ctx context.Context, only []string, out io.Writer) error {
	torch, err := c.look(ctx)
	if err != nil {
		return err
	}
	if c.rounds < 1 || c.threads < 1 {
		return fmt.Errorf("-rounds %d -threads %d: want at least 1", c.rounds, c.threads)
	}
	dir, err := os.MkdirTemp("", "gangline-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c.gangline = filepath.Join(dir, "gangline")
	if _, err := output(ctx, nil, "go", "build", "-o", c.gangline, "./cmd/gangline"); err != nil {
		return err
	}
	if c.collective {
		if err := c.prepareMPI(ctx, dir); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s; PyTorch %s\n", machine(), torch)
		return c.collectives(ctx, only, out)
	}
	if c.ddp {
		fmt.Fprintf(out, "%s; PyTorch %s\n", machine(), torch)
		return c.dataParallel(ctx, dir, out)
	}
	if _, err := exec.LookPath("taskset"); err == nil {
		c.pin = []string{"taskset", "-c", "0-" + strconv.Itoa(c.threads-1)}
	}
	fmt.Fprintf(out, "%s; PyTorch %s; %d threads a side, pinned: %t\n\n", machine(), torch, c.threads, c.pin != nil)
	fmt.Fprintf(out, "| case | gangline, ms | PyTorch, ms | gangline/PyTorch, %d pairs | median |\n|---|---|---|---|---|\n", c.rounds)
	for _, g := range groups() {
		if !slices.Contains(only, g.name) {
			continue
		}
		pairs, err := c.measure(ctx, g)
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		for _, name := range g.cases {
			fmt.Fprintln(out, row(name, pairs[name]))
		}
	}
	return nil
}

// look finds the other side and returns its version.
func (c *config) look(ctx context.Context) (string, error) {
	for _, g := range groups() {
		if _, err := os.Stat(filepath.Join(c.dir, g.file)); err != nil {
			return "", absentError(err.Error() + " (see -dir)")
		}
	}
	version, err := output(ctx, nil, c.python, "-c", "import torch; print(torch.__version__)")
	if err != nil {
		return "", absentError(fmt.Sprintf("%s has no PyTorch (see -python; Debian: python3-torch): %v", c.python, err))
	}
	return strings.TrimSpace(string(version)), nil
}

// measure times both sides in turns; who comes first changes from round to round.
func (c *config) measure(ctx context.Context, g group) (map[string][]pair, error) {
	pairs := map[string][]pair{}
	for round := range c.rounds {
		var ours, peer map[string]float64
		sides := []func() error{
			func() (err error) { ours, err = c.ours(ctx, g); return err },
			func() (err error) { peer, err = c.peer(ctx, g); return err },
		}
		if round%2 == 1 {
			slices.Reverse(sides)
		}
		for _, side := range sides {
			if err := side(); err != nil {
				return nil, err
			}
		}
		for _, name := range g.cases {
			if ours[name] <= 0 || peer[name] <= 0 {
				return nil, fmt.Errorf("case %s: no time of one side: %v, %v", name, ours, peer)
			}
			pairs[name] = append(pairs[name], pair{ours[name], peer[name]})
		}
	}
	return pairs, nil
}

// ours runs gangline and returns the seconds of a step by case.
func (c *config) ours(ctx context.Context, g group) (map[string]float64, error) {
	args := []string{c.gangline, "bench", "step", "--json", "--threads", strconv.Itoa(c.threads), "--case", strings.Join(g.cases, ",")}
	text, err := output(ctx, nil, slices.Concat(c.pin, args)...)
	if err != nil {
		return nil, err
	}
	var results []bench.Result
	if err := json.Unmarshal(text, &results); err != nil {
		return nil, fmt.Errorf("gangline bench step: %w", err)
	}
	times := map[string]float64{}
	for _, r := range results {
		times[r.Name] = r.Median
	}
	return times, nil
}

// peer runs PyTorch and returns the seconds of a step by our names of the cases.
func (c *config) peer(ctx context.Context, g group) (map[string]float64, error) {
	n := strconv.Itoa(c.threads)
	args := slices.Concat(c.pin, []string{c.python, filepath.Join(c.dir, g.file), n}, g.args)
	env := []string{"OMP_NUM_THREADS=" + n, "OPENBLAS_NUM_THREADS=" + n, "OPENBLAS_CORETYPE=" + coreType()}
	text, err := output(ctx, env, args...)
	if err != nil {
		return nil, err
	}
	return parsePeer(string(text))
}

// coreType names the best kernels of OpenBLAS for this processor. Left alone it
// takes those of a Pentium 4 on any processor that is newer than itself.
func coreType() string {
	switch x := cpu.X86; {
	case x.HasAVX512F && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512BW:
		return "SkylakeX"
	case x.HasAVX2 && x.HasFMA:
		return "Haswell"
	default:
		return "" // its own choice
	}
}

// output runs a command and returns what it prints; an error has its last words.
func output(ctx context.Context, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	// No setting of this shell holds the other side back.
	own := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "OPENBLAS_") })
	cmd.Env = append(own, env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, errs.String())
	}
	return text, nil
}
