package train

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
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
