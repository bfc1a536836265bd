package train

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/train/meet"
)

// agreeTag carries what workers say of their rows to rank 0.
const agreeTag = tallyTag + 1

// seen is what a worker read: data that differ from host to host would give
// different numbers of steps, which is a hang, or other numbers than meant.
type seen struct {
	Features string // digest of what they learned; "": there are none
	Train    data.Fingerprint
	Eval     *data.Fingerprint // nil: nothing to test on
}

// featuresDigest tells features apart; "" where there are none.
func featuresDigest(f *feature.Fitted) (string, error) {
	if f == nil {
		return "", nil
	}
	return f.Digest()
}

// workers are those of the job, for what they say to each other between steps.
func (m *member) workers() meet.Workers {
	return meet.Workers{
		Endpoint: m.endpoint, Rank: m.cfg.Rank, Count: m.setup.Cluster.Workers, Patience: time.Duration(m.setup.Job.Network.TaskTimeout),
	}
}

// agree lets rank 0 compare the rows of all workers, before the first step. What
// the job alone decides is in the digest that all ranks compare when they join.
func (w *worker) agree(ctx context.Context) error {
	features, err := featuresDigest(w.rows.Features)
	if err != nil {
		return fmt.Errorf("rank %d: comparing data: %w", w.cfg.Rank, err)
	}
	own := seen{Features: features, Train: w.fingerprint}
	if src := w.rows.Eval; src != nil {
		f, err := data.Order{Rows: src.Rows(), Batch: w.setup.Job.Eval.Batch}.Fingerprint(src)
		if err != nil {
			return fmt.Errorf("rank %d: %w", w.cfg.Rank, err)
		}
		own.Eval = &f
	}
	text, err := json.Marshal(own)
	if err != nil {
		return fmt.Errorf("rank %d: comparing data: %w", w.cfg.Rank, err)
	}
	others := w.workers()
	return others.Gather(ctx, agreeTag, "comparing data", text, func(rank int, text []byte) error {
		var other seen
		if err := json.Unmarshal(text, &other); err != nil {
			return fmt.Errorf("rank 0: comparing data with rank %d: %w", rank, err)
		}
		return own.differs(other, rank)
	})
}

// differs says how the rows of a rank are not those of rank 0.
func (s seen) differs(other seen, rank int) error {
	text := func(f *data.Fingerprint) string {
		if f == nil {
			return "none"
		}
		return fmt.Sprintf("%d rows of %s, sample %s", f.Rows, f.Columns, f.Sample)
	}
	if s.Features != other.Features {
		return fmt.Errorf("rank %d reads other data than rank 0: what the features learned of data.train has the digest %.16s on rank 0, %.16s on rank %d",
			rank, s.Features, other.Features, rank)
	}
	for _, c := range []struct {
		field     string
		mine, its *data.Fingerprint
	}{{"data.train", &s.Train, &other.Train}, {"data.eval", s.Eval, other.Eval}} {
		if a, b := text(c.mine), text(c.its); a != b {
			return fmt.Errorf("rank %d reads other data than rank 0: %s is %s on rank 0, %s on rank %d", rank, c.field, a, b, rank)
		}
	}
	return nil
}
