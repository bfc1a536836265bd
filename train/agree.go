package train

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/transport"
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

// agree lets rank 0 compare the rows of all workers, before the first step. What
// the job alone decides is in the digest that all ranks compare when they join.
func (w *worker) agree(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(w.setup.Job.Network.TaskTimeout),
		fmt.Errorf("nothing came within network.task_timeout, %v", time.Duration(w.setup.Job.Network.TaskTimeout)))
	defer cancel()
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
	if w.cfg.Rank != 0 {
		text, err := json.Marshal(own)
		if err != nil {
			return fmt.Errorf("rank %d: comparing data: %w", w.cfg.Rank, err)
		}
		return w.endpoint.Send(ctx, 0, agreeTag, nil, text)
	}
	for r := 1; r < w.setup.Cluster.Workers; r++ {
		recv := transport.Receive{Peer: r, Tag: agreeTag, Grow: func(n int) []byte { return make([]byte, n) }}
		if err := w.endpoint.Post(&recv); err != nil {
			return err
		}
		if err := recv.Wait(ctx); err != nil {
			return fmt.Errorf("rank 0: waiting to compare data with rank %d: %w", r, err)
		}
		var other seen
		if err := json.Unmarshal(recv.Buf[:recv.N], &other); err != nil {
			return fmt.Errorf("rank 0: comparing data with rank %d: %w", r, err)
		}
		if err := own.differs(other, r); err != nil {
			return err
		}
	}
	return nil
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
