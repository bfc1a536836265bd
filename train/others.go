package train

import (
	"context"
	"fmt"
	"time"

	"github.com/gangline/gangline/coord/crew"
	"github.com/gangline/gangline/train/agree"
	"github.com/gangline/gangline/train/meet"
)

// The tags of what workers say to each other between steps are above those of plans
// and stores.
const (
	tallyTag  = 1<<26 + iota // tallies, to rank 0
	agreeTag                 // what workers say of their rows, to rank 0
	shareTag                 // the value of a test, from rank 0
	saveTag                  // the directory of a checkpoint, from rank 0, and the shards of others, back to it
	paramsTag                // shards of the parameters, to rank 0
)

// workers are those of the job, for what they say to each other between steps.
func (m *member) workers() meet.Workers {
	return meet.Workers{
		Endpoint: m.endpoint, Rank: m.cfg.Rank, Count: m.setup.Cluster.Workers, Patience: crew.Patience(time.Duration(m.setup.Job.Network.TaskTimeout)),
	}
}

// agree lets rank 0 compare the rows of all workers, before the first step.
func (w *worker) agree(ctx context.Context) error {
	own, err := agree.Of(w.fingerprint, w.rows.Eval, w.setup.Job.Eval.Batch, w.rows.Features)
	if err != nil {
		return fmt.Errorf("rank %d: %w", w.cfg.Rank, err)
	}
	return own.Compare(ctx, w.workers(), agreeTag)
}
