package data

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/gangline/gangline/internal/mix"
)

// ErrOtherData is wrapped by the error of a cursor that was saved over other
// data, or over another order of them.
var ErrOtherData = errors.New("the cursor belongs to other data")

// Fingerprint tells two sequences of batches apart. Equal fingerprints mean the
// same rows in the same steps, as far as a sample of the rows can tell.
type Fingerprint struct {
	Rows    int    `json:"rows"`
	Batch   int    `json:"batch"`
	Seed    uint64 `json:"seed"`
	Shuffle bool   `json:"shuffle"`
	// Columns is "label:dense:1,x:ragged:123".
	Columns string `json:"columns"`
	// Block and Window are those of the order; both 0: all rows are shuffled together.
	Block  int `json:"block,omitempty"`
	Window int `json:"window,omitempty"`
	// Sample is a hash of 64 rows spread evenly over the source.
	Sample string `json:"sample"`
}

// Fingerprint describes this order over a source. It reads 64 rows.
func (o Order) Fingerprint(src Source) (Fingerprint, error) {
	f := Fingerprint{Rows: o.Rows, Batch: o.Batch, Seed: o.Seed, Shuffle: o.Shuffle, Block: o.Block, Window: o.Window}
	if n := src.Rows(); n != o.Rows {
		return f, fmt.Errorf("data: an order of %d rows does not fit a source of %d", o.Rows, n)
	}
	var columns []string
	for _, c := range src.Columns() {
		columns = append(columns, fmt.Sprintf("%s:%s:%d", c.Name, c.Kind, c.Dim))
	}
	f.Columns = strings.Join(columns, ",")
	rows := make([]int, min(64, o.Rows))
	for i := range rows {
		rows[i] = part(o.Rows, i, len(rows))
	}
	var b Batch
	if err := src.Read(rows, &b); err != nil {
		return f, fmt.Errorf("data: fingerprint: %w", err)
	}
	h := uint64(0)
	for i := range b.Columns {
		h = hashColumn(&b.Columns[i], h)
	}
	f.Sample = fmt.Sprintf("%016x", h)
	return f, nil
}

// hash folds everything in the column into h.
func hashColumn(c *Column, h uint64) uint64 {
	for _, v := range c.Values {
		h = mix.Mix(h ^ uint64(math.Float32bits(v)))
	}
	for _, v := range c.Offsets {
		h = mix.Mix(h ^ uint64(v))
	}
	for _, v := range c.IDs {
		h = mix.Mix(h ^ uint64(v))
	}
	return h
}

// Cursor is a position in the data that can be saved, between two steps: the
// epoch, the positions of it already used, and what they are positions of. It
// does not depend on the number of ranks.
type Cursor struct {
	Epoch  int         `json:"epoch"`
	Offset int         `json:"offset"`
	Of     Fingerprint `json:"of"`
}

// CursorAt is the cursor before a step.
func (o Order) CursorAt(step int64, of Fingerprint) Cursor {
	epoch, lo, _ := o.At(step)
	return Cursor{Epoch: epoch, Offset: lo, Of: of}
}

// StepAt is the step that a saved cursor stands before. If the data or the order
// are not those of the cursor, which now describes, the error wraps
// ErrOtherData and names every difference.
func (o Order) StepAt(c Cursor, now Fingerprint) (int64, error) {
	if err := c.Check(now); err != nil {
		return 0, err
	}
	if c.Epoch < 0 || c.Offset < 0 || c.Offset >= o.Rows || c.Offset%o.Batch != 0 {
		return 0, fmt.Errorf("data: epoch %d, offset %d is no position before a batch of %d in %d rows",
			c.Epoch, c.Offset, o.Batch, o.Rows)
	}
	per := int64(o.StepsPerEpoch())
	return int64(c.Epoch)*per + int64(c.Offset/o.Batch), nil
}

// Check tells whether the cursor was saved over the data that now describes. If
// not, the error wraps ErrOtherData and names every difference.
func (c Cursor) Check(now Fingerprint) error {
	var diff []string
	was := c.Of
	note := func(name string, was, now any) {
		if was != now {
			diff = append(diff, fmt.Sprintf("%s was %v, is %v", name, was, now))
		}
	}
	note("rows", was.Rows, now.Rows)
	note("batch", was.Batch, now.Batch)
	note("seed", was.Seed, now.Seed)
	note("shuffle", was.Shuffle, now.Shuffle)
	note("rows of a block", was.Block, now.Block)
	note("blocks of a window, which data.memory decides", was.Window, now.Window)
	note("columns", was.Columns, now.Columns)
	note("sample of the rows", was.Sample, now.Sample)
	if diff == nil {
		return nil
	}
	return fmt.Errorf("data: cannot go on at epoch %d, offset %d: %w: %s",
		c.Epoch, c.Offset, ErrOtherData, strings.Join(diff, "; "))
}

// cursorForm is the text form of a cursor, for printing and scanning.
const cursorForm = "epoch=%d offset=%d rows=%d batch=%d seed=%d shuffle=%t block=%d window=%d columns=%s sample=%s"

// String is the text form, one line that ParseCursor reads back.
func (c Cursor) String() string {
	f := c.Of
	return fmt.Sprintf(cursorForm, c.Epoch, c.Offset, f.Rows, f.Batch, f.Seed, f.Shuffle, f.Block, f.Window, f.Columns, f.Sample)
}

// ParseCursor is the inverse of String. It refuses what String does not write.
func ParseCursor(s string) (Cursor, error) {
	var c Cursor
	f := &c.Of
	_, err := fmt.Sscanf(s, cursorForm, &c.Epoch, &c.Offset, &f.Rows, &f.Batch, &f.Seed, &f.Shuffle, &f.Block, &f.Window, &f.Columns, &f.Sample)
	if err != nil || c.String() != s {
		return Cursor{}, fmt.Errorf("data: %q is no cursor: want %q", s, cursorForm)
	}
	return c, nil
}
