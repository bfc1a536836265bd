package exec

import (
	"context"
	"errors"
)

// feed asks the Feeder for a batch.
type feed struct {
	still
	operands
	feeder Feeder
}

func (b *binder) feed(io operands) (op, error) {
	if b.e.cfg.Feeder == nil {
		return nil, errors.New("no Feeder")
	}
	return &feed{operands: io, feeder: b.e.cfg.Feeder}, io.counts(0, -1)
}

func (o *feed) run(_ context.Context, step int64, c int) error { return o.feeder.Feed(step, o.out[c]) }
