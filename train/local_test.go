package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/report"
	"github.com/gangline/gangline/train/input"
)

// localKinds are strategies whose workers train copies of their own, on so many.
func localKinds(workers int) []string {
	var all []string
	for _, s := range []string{
		"kind: localsgd, every: 4", "kind: localsgd, every: 3, slots: average", "kind: localsgd, every: 4, slots: reset",
		"kind: localsgd, every: 1", "kind: localsgd, every: 3, outer: {momentum: 0.5}",
		"kind: localsgd, every: 4, slots: average, outer: {momentum: 0.9, lr: 0.7, nesterov: true}",
		"kind: sma", "kind: sma, every: 3, alpha: 0.5",
	} {
		all = append(all, fmt.Sprintf("{%s, workers: %d}", s, workers))
	}
	return all
}

const localText = `
model: {kind: mlp, hidden: [8], classes: 2}
optimizer: {kind: adam, lr: 0.01}
batch: 30
epochs: 2
steps: 12
data: {train: {format: generated, rows: 211, buckets: 500, seed: 5}}
checkpoint: {every: 5, keep: 9}
`

// A run of copies that was ended after a checkpoint within a cycle and goes on from it
// ends with the bits, and the checkpoint, of the run that never was interrupted: the
// outer optimizer's state is in it too.
func TestLocalResumeIsTheSameRun(t *testing.T) {
	for _, s := range localKinds(3) {
		t.Run(s, func(t *testing.T) {
			whole, part := t.TempDir(), t.TempDir()
			text := localText + "strategy: " + s + "\n"
			want := runMem(t, parse(t, text, "checkpoint.dir="+whole), 0)
			middle := checkpointOf(t, whole, 5)
			if err := os.CopyFS(filepath.Join(part, filepath.Base(middle)), os.DirFS(middle)); err != nil {
				t.Fatal(err)
			}
			got := runMem(t, parse(t, text, "checkpoint.dir="+part), 1)
			if got.Resumed != 5 || got.Steps != 12 {
				t.Errorf("the run that went on: %+v", got.Summary)
			}
			if got.ParamsSHA256 != want.ParamsSHA256 {
				t.Errorf("parameters %s, want %s", got.ParamsSHA256, want.ParamsSHA256)
			}
			sameFiles(t, checkpointOf(t, whole, 12), checkpointOf(t, part, 12))
		})
	}
}

// What a strategy of copies had is in the report; a model with tables is refused by
// the name of the field.
func TestLocalStrategies(t *testing.T) {
	j := parse(t, localText, "checkpoint.every=0", "strategy.kind=localsgd", "strategy.every=5", "strategy.outer.momentum=0.9")
	want := report.Strategy{
		Kind: "localsgd", Workers: 2, Consistency: "bsp", Every: 5, Slots: "keep", Outer: &report.Outer{Momentum: .9, LR: 1},
	}
	if d := cmp.Diff(want, StrategyOf(j)); d != "" {
		t.Errorf("the report says (-want +got):\n%s", d)
	}
	if got := StrategyOf(parse(t, localText, "checkpoint.every=0", "strategy.kind=sma")); got.Every != 1 || got.Alpha != .1 || got.Outer != nil {
		t.Errorf("the report says %+v of sma", got)
	}
	j = parse(t, resumeJob, "checkpoint.every=0", "strategy.kind=localsgd")
	columns, err := input.Columns(t.Context(), j, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewSetup(j, columns)
	if f, ok := errors.AsType[*job.FieldError](err); !ok || f.Field != "strategy" || !strings.Contains(f.Fix, "is a table") {
		t.Errorf("of a model with tables: %v", err)
	}
}

// A worker whose steps are never finite gives up by itself, and is named.
func TestLocalWorkerGivesUp(t *testing.T) {
	j := parse(t, localText, "strategy.kind=localsgd", "strategy.every=40", "steps=30", "epochs=9", "checkpoint.every=0",
		"optimizer.kind=sgd", "optimizer.lr=1e38")
	_, errs := lifeMem(t, j, 0)
	if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), "were skipped: values were not finite; lower optimizer.lr") {
		t.Errorf("ended with %v", err)
	}
}
