package train

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/train/input"
)

const textJob = `
model: {kind: gpt, dim: 8, layers: 1, heads: 2, dropout: 0.3}
data:
  train: {format: text, path: train.txt, context: 8, to: 0.9}
  eval: {format: text, path: test.txt, context: 8}
batch: 16
epochs: 3
optimizer: {kind: adamw, lr: 0.01}
eval: {every: 10, batch: 4}
checkpoint: {dir: ckpt}
`

// A model of text is tested on every token once, without dropout, in the numbers
// of the training file, on any number of workers.
func TestTextIsTested(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"train.txt": strings.Repeat("the ring sums what the ranks send. ", 40),
		"test.txt":  strings.Repeat("ranks sum the rest. ", 6), // of fewer letters; 14 rows
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var losses []float64
	for _, s := range []string{"{kind: serial}", "{kind: allreduce, workers: 3}", "{kind: ps, workers: 2}"} {
		j := parse(t, textJob+"strategy: "+s+"\n", "precision=f64", "checkpoint.dir="+t.TempDir(),
			"data.train.path="+filepath.Join(dir, "train.txt"), "data.eval.path="+filepath.Join(dir, "test.txt"))
		rows, err := input.Open(t.Context(), j, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		want := data.ColumnSpec{Name: "tokens", Kind: data.RaggedColumn, Dim: 16, PerRow: 8}
		if a, b := rows.Train.Columns()[1], rows.Eval.Columns()[1]; a != want || b != want {
			t.Fatalf("columns %+v, to test on %+v", a, b)
		}
		main := runMem(t, j, 0)
		alone, err := Evaluate(t.Context(), j, "", j.Checkpoint.Dir)
		if err != nil {
			t.Fatal(err)
		}
		got := main.Eval
		if got.Rows != 14*8 || got.Perplexity == nil || math.Abs(*got.Perplexity-math.Exp(*got.Loss)) > 1e-9 || *got.Accuracy == 0 {
			t.Errorf("%s: loss %v, perplexity %v, accuracy %v of %d", s, *got.Loss, *got.Perplexity, *got.Accuracy, got.Rows)
		}
		if math.Abs(*got.Loss-*alone.Eval.Loss) > 1e-12 {
			t.Errorf("%s: loss %v, alone %v", s, *got.Loss, *alone.Eval.Loss)
		}
		if *main.TrainLoss >= math.Log(16) {
			t.Errorf("%s: loss %v on the training text: nothing was learnt", s, *main.TrainLoss)
		}
		losses = append(losses, *got.Loss)
	}
	for _, l := range losses[1:] {
		if math.Abs(l-losses[0]) > 1e-9 {
			t.Errorf("losses %v", losses)
		}
	}
}
