//go:build unix

package chaos

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// counted is a job of rowcount: row i has one feature that no other row has, so that
// the parameter of this feature tells how often the row was used, in every epoch.
type counted struct {
	name   string
	source countedSource
	rows   int  // in the files
	small  bool // they do not fit into memory
	table  bool
	batch  int
	epochs int
	every  int // steps between checkpoints
	keep   int
	seed   uint64
}

// countedSource is a way in which rows stand in files.
type countedSource struct {
	name  string
	yaml  string // what a job says of them, after its memory
	named bool   // features have names, and ids in the order of a vocabulary
	bytes int    // of a row in memory, at least
	part  int    // 1/part of the rows is for tests; 0: none
	files func(rows int) map[string]string
}

// A use in epoch e adds usesTop / usesEach^e, so that epochs do not mix.
const (
	usesTop  = 1 << 20
	usesEach = 1 << 10
)

func countedSources() []countedSource {
	line := func(i int) string { return fmt.Sprintf("1 %d:1\n", i+1) }
	one := func(rows int) map[string]string {
		var text strings.Builder
		for i := range rows {
			text.WriteString(line(i))
		}
		return map[string]string{"rows.svm": text.String()}
	}
	return []countedSource{
		{name: "a file", yaml: `{train: {format: libsvm, path: rows.svm}`, bytes: 16, files: one},
		{
			name: "a part of a file", yaml: `{train: {format: libsvm, path: rows.svm, split: {by: tail, validation: 0.25}}`, bytes: 16, part: 4, files: one,
		},
		{
			name: "files with bad rows", yaml: `{train: {format: libsvm, path: "part-*", max_bad_rows: 0.1}`, bytes: 16,
			files: func(rows int) map[string]string {
				var text [3]strings.Builder
				for i := range rows {
					t := &text[3*i*i/rows/rows] // of different lengths
					t.WriteString(line(i))
					if i%97 == 5 {
						t.WriteString("1 one:1\n")
					}
				}
				return map[string]string{"part-a.svm": text[0].String(), "part-b.svm.gz": packed(text[1].String()), "part-c.svm": text[2].String()}
			},
		},
		{
			name: "columns", yaml: `{train: {format: csv, path: rows.csv, header: true}, label: {column: y}, features: [{kind: category, column: name}]`,
			named: true, bytes: 8,
			files: func(rows int) map[string]string {
				text := strings.Builder{}
				text.WriteString("name,y\n")
				for i := range rows {
					fmt.Fprintf(&text, "row %d,1\n", i)
				}
				return map[string]string{"rows.csv": text.String()}
			},
		},
	}
}

// packed is a text as gzip.
func packed(text string) string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write([]byte(text)); err != nil {
		panic(err) // memory takes everything
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return out.String()
}

// drawCounted draws a job; one after the other, they have all kinds of sources.
func drawCounted(rng *rand.Rand, n int) counted {
	sources := countedSources()
	c := counted{
		source: sources[n%len(sources)], rows: 4 * (500 + rng.IntN(500)), small: rng.IntN(2) == 0, table: rng.IntN(2) == 0,
		batch: 40 + rng.IntN(120), epochs: 1 + rng.IntN(3), every: 1 + rng.IntN(6), keep: 1 + rng.IntN(2), seed: rng.Uint64N(1000),
	}
	where := "in memory"
	if c.small {
		where = "in windows"
	}
	c.name = fmt.Sprintf("%d rows of %s %s, batch %d, %d epochs, a checkpoint every %d steps", c.rows, c.source.name, where, c.batch, c.epochs, c.every)
	if c.table {
		c.name += ", a table"
	}
	return c
}

// write makes the files of the job below a directory of a bench, and returns that of
// the job itself.
func (c *counted) write(b *bench, dir string) string {
	b.t.Helper()
	if err := os.Mkdir(b.path(dir), 0o755); err != nil {
		b.t.Fatal(err)
	}
	for name, text := range c.source.files(c.rows) {
		b.write(dir+"/"+name, text)
	}
	memory := "1GB"
	if c.small {
		memory = fmt.Sprintf("%dKB", c.trained()*c.source.bytes*6/10_000)
	}
	return b.write(dir+"/job.yaml", fmt.Sprintf(`
model: {kind: rowcount, table: %t}
data: %s, memory: %s, cache_dir: %s}
seed: %d
batch: %d
epochs: %d
precision: f64
optimizer: {kind: rowcount, lr: %d, schedule: {kind: step, every: %d, factor: %v}}
checkpoint: {every: %d, keep: %d}
network: {task_timeout: 1m}
`, c.table, c.source.yaml, memory, b.path(dir+"/cache"), c.seed, c.batch, c.epochs, usesTop, c.stepsPerEpoch(), 1.0/usesEach, c.every, c.keep))
}

// trained is how many rows are trained on.
func (c *counted) trained() int {
	if c.source.part > 0 {
		return c.rows - c.rows/c.source.part
	}
	return c.rows
}

func (c *counted) stepsPerEpoch() int { return (c.trained()-1)/c.batch + 1 }

// steps is that of the whole run.
func (c *counted) steps() int64 { return int64(c.epochs * c.stepsPerEpoch()) }

// position is how many examples the steps before a step have.
func (c *counted) position(step int64) int64 {
	per := int64(c.stepsPerEpoch())
	return step/per*int64(c.trained()) + step%per*int64(c.batch)
}

// usesOf writes out how often a row was used in the epochs.
func (c *counted) usesOf(v float64) string {
	var out []string
	for e, each := 0, float64(usesTop); e < c.epochs; e, each = e+1, each/usesEach {
		n := float64(int64(v / each))
		v -= n * each
		out = append(out, fmt.Sprint(n))
	}
	return strings.Join(out, " + ")
}

// check compares the parameters with one use of every trained row in every epoch.
func (c *counted) check(uses []float64) error {
	want := 0.0
	for e, each := 0, float64(usesTop); e < c.epochs; e, each = e+1, each/usesEach {
		want += each
	}
	uses = slices.Clone(uses)
	if c.source.named { // unused ids, such as that of unknown names, are no rows
		slices.SortFunc(uses, func(a, b float64) int { return int(b - a) })
	}
	if len(uses) < c.trained() {
		return fmt.Errorf("%d features for %d rows", len(uses), c.trained())
	}
	var wrong []string
	for i, v := range uses {
		if i >= c.trained() && v != 0 {
			wrong = append(wrong, fmt.Sprintf("row %d, which is not trained on, was used %s times", i, c.usesOf(v)))
		} else if i < c.trained() && v != want {
			wrong = append(wrong, fmt.Sprintf("row %d was used %s times", i, c.usesOf(v)))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d of %d rows were not used once an epoch: %s", len(wrong), c.trained(), strings.Join(wrong[:min(5, len(wrong))], "; "))
	}
	return nil
}

// spread is where a run stands: a strategy over workers and servers.
type spread struct {
	kind             string
	workers, servers int
}

func (s spread) String() string {
	if s.servers > 0 {
		return fmt.Sprintf("%s %d+%d", s.kind, s.workers, s.servers)
	}
	return fmt.Sprintf("%s %d", s.kind, s.workers)
}

// world is the number of ranks.
func (s spread) world() int { return s.workers + s.servers }

// updaters is how many processes update parameters.
func (s spread) updaters() int {
	if s.servers > 0 {
		return s.servers
	}
	return s.workers
}

// settings are those of a job on this spread.
func (s spread) settings() []string {
	return []string{
		"strategy.kind=" + s.kind, fmt.Sprintf("strategy.workers=%d", s.workers), fmt.Sprintf("strategy.servers=%d", s.servers),
	}
}

// drawSpread draws one to three workers and a strategy for them.
func drawSpread(rng *rand.Rand) spread {
	s := spread{kind: "allreduce", workers: 1 + rng.IntN(3)}
	switch {
	case rng.IntN(2) == 0:
		s.kind, s.servers = "ps", 1+rng.IntN(2)
	case s.workers == 1:
		s.kind = "serial"
	}
	return s
}
