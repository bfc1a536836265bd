// Package agree lets workers find out, before the first step, that they read the same rows.
package agree

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/train/meet"
)

// Seen is what a worker read: data that differ from host to host would give
// different numbers of steps, which is a hang, or other numbers than meant.
type Seen struct {
	Features string // digest of what they learned; "": there are none
	Train    data.Fingerprint
	Eval     *data.Fingerprint // nil: nothing to test on
}

// Of says what this worker read: rows to train on, rows to test on, nil if there are none,
// and features, nil likewise. tests is the number of rows of a step of a test.
func Of(train data.Fingerprint, eval data.Source, tests int, f *feature.Fitted) (Seen, error) {
	s := Seen{Train: train}
	if f != nil {
		var err error
		if s.Features, err = f.Digest(); err != nil {
			return s, fmt.Errorf("comparing data: %w", err)
		}
	}
	if eval != nil {
		f, err := data.Order{Rows: eval.Rows(), Batch: tests}.Fingerprint(eval)
		if err != nil {
			return s, err
		}
		s.Eval = &f
	}
	return s, nil
}

// Compare lets rank 0 compare what all workers read. What the job alone decides is in the
// digest that all ranks compare when they join.
func (s Seen) Compare(ctx context.Context, others meet.Workers, tag uint32) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("rank %d: comparing data: %w", others.Rank, err)
	}
	return others.Gather(ctx, tag, "comparing data", text, func(rank int, text []byte) error {
		var other Seen
		if err := json.Unmarshal(text, &other); err != nil {
			return fmt.Errorf("rank 0: comparing data with rank %d: %w", rank, err)
		}
		return s.differs(other, rank)
	})
}

// differs says how the rows of a rank are not those of rank 0.
func (s Seen) differs(other Seen, rank int) error {
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
