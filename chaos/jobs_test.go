//go:build unix

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
)

// spec is a job that tests run.
type spec struct {
	name             string
	text             string
	workers, servers int
}

// world is the number of ranks.
func (s spec) world() int { return s.workers + s.servers }

// write puts the job file into the bench, once: somebody may be reading it.
func (s spec) write(b *bench) string {
	b.t.Helper()
	if path := b.path(s.name + ".yaml"); exists(path) {
		return path
	}
	return b.write(s.name+".yaml", s.text)
}

// exists says whether there is a file.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// linesSource and clicksSource are the data of the jobs.
const (
	linesSource  = "{format: libsvm, path: lines.svm, features: 30}"
	clicksSource = "{format: generated, rows: 9000, seed: 7, buckets: 4096}"
	clicksEval   = "{format: generated, rows: 2000, first: 100000, seed: 7, buckets: 4096}"
)

// specs are small jobs that differ in model, optimizer, strategy and in how often
// they write a checkpoint: often, so that many kills fall into the writing.
func specs() []spec {
	return []spec{
		{"logistic-allreduce", `
model: {kind: logistic}
data: {train: ` + linesSource + `, eval: ` + linesSource + `}
batch: 50
optimizer: {kind: adam, lr: 0.01}
eval: {every: 25}
strategy: {kind: allreduce, workers: 2}
checkpoint: {every: 1}
`, 2, 0},
		{"ctr-ps", `
model: {kind: ctr, hidden: [8], dim: 4}
data: {train: ` + clicksSource + `, eval: ` + clicksEval + `}
batch: 150
optimizer: {kind: adagrad, lr: 0.05}
strategy: {kind: ps, workers: 2, servers: 2}
checkpoint: {every: 3}
`, 2, 2},
		{"mlp-ps", `
model: {kind: mlp, hidden: [16]}
data: {train: ` + linesSource + `}
batch: 50
optimizer: {kind: momentum, lr: 0.05, momentum: 0.9}
strategy: {kind: ps, workers: 2, servers: 1}
checkpoint: {every: 2, keep: 1}
`, 2, 1},
		{"ctr-allreduce", `
model: {kind: ctr, hidden: [8], dim: 4}
data: {train: ` + clicksSource + `}
batch: 150
optimizer: {kind: adam, lr: 0.01}
strategy: {kind: allreduce, workers: 2}
checkpoint: {every: 2, keep: 3}
`, 2, 0},
		{"mlp-zero", `
model: {kind: mlp, hidden: [16]}
data: {train: ` + linesSource + `, eval: ` + linesSource + `}
batch: 50
optimizer: {kind: adam, lr: 0.01, clip_norm: 1}
eval: {every: 10}
strategy: {kind: zero, workers: 3, stage: 3, bucket: 256B}
checkpoint: {every: 1}
`, 3, 0},
		{"table-ps", `
model: {kind: logistic, table: true}
data: {train: ` + linesSource + `, eval: ` + linesSource + `}
batch: 50
optimizer: {kind: adam, lr: 0.01}
eval: {every: 10}
strategy: {kind: ps, workers: 2, servers: 2}
checkpoint: {every: 1}
network: {kind: tcp, checksum: true}
`, 2, 2},
	}
}

// specOf finds a job by name.
func specOf(name string) spec {
	for _, s := range specs() {
		if s.name == name {
			return s
		}
	}
	panic("no job " + name)
}

// endless are settings that let a job run until something ends it, without
// checkpoints.
func endless() []string {
	return []string{"epochs=1000000", "checkpoint.every=0", "eval.every=0"}
}

// writeLines makes lines.svm: rows whose label follows from a planted weight.
func writeLines(b *bench) {
	b.t.Helper()
	b.write("lines.svm", linesText(1))
}

// linesText are the rows of lines.svm; another seed plants another weight.
func linesText(seed uint64) string {
	const rows, features, present = 3000, 30, 8
	rng := rand.New(rand.NewPCG(seed, 2))
	weight := make([]float64, features)
	for i := range weight {
		weight[i] = rng.NormFloat64()
	}
	var out strings.Builder
	for range rows {
		logit, row := 0.0, ""
		for _, k := range firstOf(rng, features, present) {
			v := rng.NormFloat64()
			logit += v * weight[k]
			row += fmt.Sprintf(" %d:%.4f", k+1, v)
		}
		label := "-1"
		if logit+rng.NormFloat64()/2 > 0 {
			label = "+1"
		}
		out.WriteString(label + row + "\n")
	}
	return out.String()
}

// firstOf picks n of the numbers below limit, ascending.
func firstOf(rng *rand.Rand, limit, n int) []int {
	var out []int
	for k := range limit {
		if rng.IntN(limit-k) < n-len(out) {
			out = append(out, k)
		}
	}
	return out
}
