package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// dlrmBatch is the batch of our dlrm; the other side times others too.
const dlrmBatch = 4096

// parsePeer reads the seconds of a step from what the programs of the other side
// print:
//
//	torch T=1 sgemm512: median 4.061 ms min 3.993 ms ...
//	dlrm torch threads=1 batch=4096 examples_per_s=18012
func parsePeer(text string) (map[string]float64, error) {
	step := regexp.MustCompile(`^torch T=\d+ (.+): median ([0-9.]+) ms `)
	dlrm := regexp.MustCompile(`^dlrm torch threads=\d+ batch=(\d+) examples_per_s=([0-9.]+)`)
	times := map[string]float64{}
	for line := range strings.Lines(text) {
		if m := step.FindStringSubmatch(line); m != nil {
			ms, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			name := m[1]
			if name == "ctr sparse=True" {
				name = "ctr"
			}
			times[name] = ms / 1e3
		}
		if m := dlrm.FindStringSubmatch(line); m != nil && m[1] == strconv.Itoa(dlrmBatch) {
			rate, err := strconv.ParseFloat(m[2], 64)
			if err != nil || rate <= 0 {
				return nil, fmt.Errorf("%q: no rate", line)
			}
			times["dlrm"] = dlrmBatch / rate
		}
	}
	return times, nil
}

// row is the line of a case: medians of either side in milliseconds, the ratios of
// all pairs, and their median.
func row(name string, pairs []pair) string {
	var ours, peer, ratios []float64
	var each []string
	for _, p := range pairs {
		ours, peer, ratios = append(ours, p.ours), append(peer, p.peer), append(ratios, p.ours/p.peer)
		each = append(each, strconv.FormatFloat(p.ours/p.peer, 'f', 3, 64))
	}
	return fmt.Sprintf("| %s | %.3f | %.3f | %s | **%.3f** |", name, 1e3*median(ours), 1e3*median(peer), strings.Join(each, " "), median(ratios))
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// machine says when and where.
func machine() string {
	cpu := runtime.GOARCH
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if key, value, _ := strings.Cut(s.Text(), ":"); strings.TrimSpace(key) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s; %s, %d cores, %s; %s", time.Now().Format(time.DateOnly), cpu, runtime.NumCPU(), runtime.GOOS, runtime.Version())
}
