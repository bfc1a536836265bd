package data

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gangline/gangline/data/parse"
	"github.com/gangline/gangline/data/rows"
)

// readIdx reads images and their labels. Bytes are kept and scaled when read.
func readIdx(ctx context.Context, spec *Spec) (*memory, error) {
	var images, labels parse.Idx
	for _, in := range []struct {
		path string
		into *parse.Idx
	}{{spec.Path, &images}, {spec.Labels, &labels}} {
		r, err := openStream(ctx, in.path)
		if err != nil {
			return nil, fmt.Errorf("data: idx: %w", err)
		}
		*in.into, err = parse.ReadIdx(in.path, r, spec.Limit)
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
	}
	return joinIdx(spec, images, labels)
}

// joinIdx makes a source of images and labels that belong together.
func joinIdx(spec *Spec, images, labels parse.Idx) (*memory, error) {
	switch {
	case labels.Dim != 1:
		return nil, fmt.Errorf("data: %s is no file of labels: it has %d bytes a record, want 1", spec.Labels, labels.Dim)
	case images.Count != labels.Count:
		return nil, fmt.Errorf("data: %s has %d records but %s has %d: they do not belong together",
			spec.Path, images.Count, spec.Labels, labels.Count)
	case images.Count == 0 || images.Dim == 0:
		return nil, fmt.Errorf("data: %s holds nothing: %d records of %d bytes", spec.Path, images.Count, images.Dim)
	}
	if i := slices.IndexFunc(labels.Bytes, func(b uint8) bool { return spec.Classes > 0 && int(b) >= spec.Classes }); i >= 0 {
		return nil, fmt.Errorf("data: %w", &RowError{
			File: spec.Labels, Line: i + 1, Column: "label", Reason: fmt.Sprintf("label %d is beyond the %d classes from 0", labels.Bytes[i], spec.Classes),
		})
	}
	scaled, whole := new([256]float32), new([256]float32)
	for b := range 256 {
		scaled[b] = float32(b) / 255
		whole[b] = float32(b)
	}
	b := rows.Block{Rows: images.Rows, Columns: []rows.Packed{
		{Bytes: labels.Bytes, Table: whole}, {Bytes: images.Bytes, Table: scaled},
	}}
	return newMemory(&b, badRows{},
		ColumnSpec{Name: "label", Kind: DenseColumn, Dim: 1}, ColumnSpec{Name: "x", Kind: DenseColumn, Dim: images.Dim}), nil
}
