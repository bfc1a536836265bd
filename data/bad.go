package data

import (
	"fmt"

	"github.com/gangline/gangline/data/rejects"
)

// maxBadSamples is the number of bad rows that a source remembers.
const maxBadSamples = 5

// badRows counts rows that were skipped and remembers the first few.
type badRows struct {
	count, limit int
	share        float64 // above 0: instead of limit, of all rows
	samples      []RowError
	rejects      *rejects.File
}

// BadRows returns how many rows of the file were skipped because they are
// malformed.
func (b *badRows) BadRows() int { return b.count }

// BadSamples returns the first few of the rows that were skipped.
func (b *badRows) BadSamples() []RowError { return b.samples }

// add notes a bad row, or returns it as an error if there are too many.
func (b *badRows) add(e *RowError) error { return b.addRaw(e, nil) }

// addRaw is add for a row whose text is known.
func (b *badRows) addRaw(e *RowError, raw []byte) error {
	b.rejects.Add(e, raw)
	if b.share == 0 && b.count == b.limit {
		if b.limit > 0 {
			return fmt.Errorf("data: more than %d bad rows; the last: %w", b.limit, e)
		}
		return fmt.Errorf("data: %w", e)
	}
	b.count++
	if len(b.samples) < maxBadSamples {
		b.samples = append(b.samples, *e)
	}
	return nil
}

// judge tells, at the end, whether the share of bad rows is too large beside so many
// good ones.
func (b *badRows) judge(good int) error {
	if b.share == 0 || float64(b.count) <= b.share*float64(b.count+good) {
		return nil
	}
	return fmt.Errorf("data: %d of %d rows are malformed, more than the share of %v allowed; the first: %w",
		b.count, b.count+good, b.share, &b.samples[0])
}
