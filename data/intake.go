package data

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gangline/gangline/data/split"
)

// Intake says which rows of a file are kept, and where. It has no meaning for
// generated rows, images (idx) and text.
type Intake struct {
	// MaxBadShare is the share of malformed rows that are skipped and counted, in
	// [0, 1): where it is set, MaxBadRows says nothing.
	MaxBadShare float64
	// Rejects is a file for the first malformed rows, as JSON lines; "": none.
	Rejects string
	// Memory is how many bytes the rows may take; more are kept in a cache file, in
	// CacheDir, and read from it block by block. 0 is DefaultMemory. It counts for
	// every source of every process.
	Memory int64
	// CacheDir is where cache files are made; "": gangline in the user's directory for
	// caches, or else in that for temporary files.
	CacheDir string
	// Split says which part of the rows is meant; nil: all.
	Split *split.Rule
	// Negatives samples the rows with label 0, and adds the column WeightColumn where
	// there is none.
	Negatives split.Negatives
	// Weighted adds that column without a sample: for test rows of a model whose
	// training rows have it.
	Weighted bool

	into string // a cache file to make in any case, in place of a source in memory
}

// intakeFormats are those that an Intake has a meaning for.
func intakeFormats() []string {
	return []string{"libsvm", "criteo", "csv", "vw", "libffm", "npy", "npz", "parquet"}
}

// zero reports whether nothing is set but where rows may be kept.
func (n *Intake) zero() bool {
	return n.MaxBadShare == 0 && n.Rejects == "" && n.Split == nil && n.Negatives == (split.Negatives{}) && !n.Weighted
}

// check tells whether an intake is meaningful for a format.
func (n *Intake) check(format string) error {
	if !slices.Contains(intakeFormats(), format) {
		if !n.zero() {
			return fmt.Errorf("data: splits, samples of negatives, shares of bad rows and rejects have no meaning for format %s", format)
		}
		return nil
	}
	var errs []error
	bad := func(field string, err error) { errs = append(errs, fmt.Errorf("data: %s: %w", field, err)) }
	if !(n.MaxBadShare >= 0 && n.MaxBadShare < 1) {
		bad("MaxBadShare", fmt.Errorf("%v is no share: want 0 to less than 1", n.MaxBadShare))
	}
	if n.Memory < 0 {
		bad("Memory", errors.New("must not be negative"))
	}
	if err := n.Negatives.Check(); err != nil {
		bad("Negatives", err)
	}
	if n.Split == nil {
		return errors.Join(errs...)
	}
	if _, err := split.New(*n.Split); err != nil {
		bad("Split", err)
	} else if n.Split.Columns() && (format == "libsvm" || format == "criteo") {
		bad("Split", fmt.Errorf("format %s has no column %q: split by %s, %s or %s", format, n.Split.Column, split.ByFraction, split.ByTail, split.ByFile))
	}
	return errors.Join(errs...)
}

// memory is the limit of bytes.
func (n *Intake) memory() int64 {
	if n.into != "" {
		return 0 // so the first block begins the file
	}
	if n.Memory == 0 {
		return DefaultMemory
	}
	return n.Memory
}

// columns adds the column of weights that rows get here.
func (n *Intake) columns(specs []ColumnSpec) []ColumnSpec {
	if !n.Weighted && n.Negatives.Keep == 0 || slices.ContainsFunc(specs, isWeight) {
		return specs
	}
	return append(slices.Clone(specs), ColumnSpec{Name: WeightColumn, Kind: DenseColumn, Dim: 1})
}

func isWeight(c ColumnSpec) bool { return c.Name == WeightColumn }

// Sizes of blocks in memory.
const (
	blockBytes    = 1 << 20
	blockBytesMin = 4 << 10
)

// blockBytes is how large blocks are: small ones where memory is, so that windows have
// several.
func (n *Intake) blockBytes() int {
	if n.into != "" {
		return blockBytes
	}
	return int(max(blockBytesMin, min(blockBytes, n.memory()/16)))
}
