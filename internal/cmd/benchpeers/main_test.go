package main

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gangline/gangline/bench"
)

func TestParsePeer(t *testing.T) {
	got, err := parsePeer(`parallel 1
torch T=1 sgemm512: median 4.061 ms min 3.993 ms cpu 4.1 ms 246.25 steps/s 66.1 GFLOP/s (best 67.2) maxrss 200MB
torch T=1 ctr sparse=True: median 59.100 ms min 58.000 ms cpu 59 ms 16.92 steps/s  maxrss 300MB
dlrm torch threads=1 batch=1024 examples_per_s=15000
dlrm torch threads=1 batch=4096 examples_per_s=16384
`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"sgemm512": .004061, "ctr": .0591, "dlrm": .25}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRow(t *testing.T) {
	got := row("mlp", []pair{{.001, .002}, {.003, .002}, {.001, .001}})
	if want := "| mlp | 1.000 | 2.000 | 0.500 1.500 1.000 | **1.000** |"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Every case is compared.
func TestGroups(t *testing.T) {
	var all []string
	for _, g := range groups() {
		all = append(all, g.cases...)
	}
	if !slices.Equal(all, bench.Cases()) {
		t.Errorf("compared are %v, there are %v", all, bench.Cases())
	}
}

// Without the other side it is skipped, not failed.
func TestAbsent(t *testing.T) {
	c := config{dir: t.TempDir(), python: "python3", rounds: 1, threads: 1}
	if err := c.run(t.Context(), nil, io.Discard); !errors.As(err, new(absentError)) {
		t.Errorf("got %v", err)
	}
}

func TestParseAllReduce(t *testing.T) {
	got := parseAllReduce(`allreduce mpi ranks=2 bytes=4096 iters=2000 median_us=4.9 min_us=3.9 algbw_GBs=0.843 busbw_GBs=0.843
something else
allreduce torch-gloo ranks=2 bytes=65536 iters=1000 median_us=100.0 min_us=90.0 algbw_GBs=0.6 busbw_GBs=0.6
`)
	if diff := cmp.Diff(map[int]float64{4096: 4.9e-6, 65536: 1e-4}, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Error(diff)
	}
}

// Of several rivals the better one is compared, by size.
func TestBetterRival(t *testing.T) {
	best := map[int]float64{}
	for _, text := range []string{"bytes=4 iters=1 median_us=3.0", "bytes=4 iters=1 median_us=2.0", "bytes=8 iters=1 median_us=7.0"} {
		r := rival{args: func(*config, int) []string { return []string{"echo", "allreduce x " + text} }}
		if err := (&config{}).rivalOf(t.Context(), duel{}, r, best); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[int]float64{4: 2e-6, 8: 7e-6}, best, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Error(diff)
	}
}

func TestParseDDP(t *testing.T) {
	step, share, err := parseDDP("noise\nddp torch-gloo ranks=2 steps_per_s=80.0 examples_per_s=20480 step_ms(sync)=11.69 step_ms(no_sync)=6.20 comm_share=0.47\n")
	if err != nil || step != .0125 || share != .47 {
		t.Errorf("got %v, %v, %v", step, share, err)
	}
	if _, _, err := parseDDP("Traceback"); err == nil {
		t.Error("what says nothing is taken")
	}
}
