package train

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gangline/gangline/coord"
)

const verdictJob = `
model: {kind: mlp, hidden: [16, 16]}
data: {train: {format: generated, rows: 300, seed: 7, buckets: 64}}
batch: 30
epochs: 1000
optimizer: {kind: sgd, lr: 0.01}
strategy: {kind: allreduce, workers: 3, bucket: 1KiB}
network: {task_timeout: 3s}
`

// stopAt is the life of a rank that does so many steps and then nothing, until the job is over.
func stopAt(ctx context.Context, cfg Config, steps int64) error {
	m, err := prepare(ctx, cfg)
	if err != nil {
		return err
	}
	defer m.close()
	if err := m.join(ctx); err != nil {
		return err
	}
	w, err := m.newWorker()
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.agree(ctx); err != nil {
		return err
	}
	if err := w.steps.Run(ctx, 0, steps); err != nil {
		return err
	}
	<-m.session.Context().Done()
	return context.Cause(m.session.Context())
}

// A rank that does not come to a collective is named on all ranks in the same words,
// with the task and the step, over streams and over messages.
func TestVerdictOfAJob(t *testing.T) {
	const absent = 1
	for _, path := range []string{"auto", "tcp", "messages"} {
		t.Run(path, func(t *testing.T) {
			j := parse(t, verdictJob, "network.path="+path)
			_, errs := runAllBy(t, j, nil, func(ctx context.Context, cfg Config) error {
				if cfg.Rank == absent {
					return stopAt(ctx, cfg, 5)
				}
				_, err := Run(ctx, cfg)
				return err
			})
			for r, err := range errs {
				abort, ok := errors.AsType[*coord.AbortError](err)
				if !ok || abort.Rank != absent || abort.Kind != coord.Overdue || len(abort.Missing) != 1 || abort.Missing[0].Silent <= 0 {
					t.Fatalf("rank %d: %#v %v", r, abort, err)
				}
				if r == 0 {
					t.Log(abort.Text)
				}
				for _, part := range []string{"rank 1 (worker", "never arrived at", "of group workers", "step 5, plan step, task collective", "silent for"} {
					if !strings.Contains(abort.Text, part) {
						t.Errorf("rank %d: %q does not say %q", r, abort.Text, part)
					}
				}
				if want := errs[0].Error(); err.Error() != want {
					t.Errorf("ranks say different things:\n%s\n%s", want, err)
				}
			}
		})
	}
}
