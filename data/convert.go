package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gangline/gangline/data/cache"
	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/data/rows"
)

// Convert writes the rows of a spec to a cache file, which format cache reads, and
// returns what the file says of itself. The file appears whole or not at all.
// Memory is that of a few blocks, for images and text that of the file. The context
// bounds it.
func Convert(ctx context.Context, spec Spec, path string) (*cache.Header, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	switch spec.Format {
	case "cache":
		return nil, fmt.Errorf("data: %s is a cache file already", spec.Path)
	case "idx", "text", "generated":
		if err := convertSource(ctx, spec, path); err != nil {
			return nil, err
		}
	default:
		spec.into = path
		src, err := Open(ctx, spec)
		if err != nil {
			return nil, err
		}
		if err := src.Close(); err != nil {
			return nil, err
		}
	}
	f, err := cache.Open(path)
	if err != nil {
		return nil, err
	}
	return &f.Header, f.Close()
}

// keptFeatures is what a cache file keeps of the features that made its rows: all of
// them where it shall stand for the files that it is converted from.
func keptFeatures(spec *Spec) (json.RawMessage, error) {
	if spec.into == "" || spec.Fitted == nil {
		return nil, nil
	}
	return spec.Fitted.Encode()
}

// Features returns the fitted features that made the rows of a cache file, with which
// rows of other files are read as they were; nil: no features made them, or the file
// was converted before it kept them. Cost: the file's header.
func Features(spec Spec) (*feature.Fitted, error) {
	f, err := cache.Open(spec.Path)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil || len(f.Features) == 0 {
		return nil, err
	}
	fitted, err := feature.Decode(f.Features)
	if err != nil {
		return nil, fmt.Errorf("data: cache %s: %w", spec.Path, err)
	}
	return fitted, nil
}

// convertSource writes the rows of a source that is in memory, or computes them.
func convertSource(ctx context.Context, spec Spec, path string) error {
	source, err := fingerprint(ctx, &spec)
	if err != nil {
		return err
	}
	src, err := Open(ctx, spec)
	if err != nil {
		return err
	}
	w, err := cache.Create(path)
	if err != nil {
		return errors.Join(err, src.Close())
	}
	specs := src.Columns()
	shift, err := writeSource(w, src, specs)
	if err = errors.Join(err, src.Close()); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Commit(cache.Header{Columns: specs, Shift: shift, Source: source})
}

// writeSource writes blocks of a source's rows in order, as large as those of files.
func writeSource(w *cache.Writer, src Source, specs []ColumnSpec) (shift uint, err error) {
	var b Batch
	if err := src.Read([]int{0}, &b); err != nil {
		return 0, err
	}
	each := int(rows.PackBatch(specs, &b).Bytes())
	shift = floorLog2(max(1, min(blockRowsMax, blockBytes/each)))
	at := make([]int, 0, 1<<shift)
	for lo := 0; lo < src.Rows(); lo += 1 << shift {
		at = at[:0]
		for r := lo; r < min(lo+1<<shift, src.Rows()); r++ {
			at = append(at, r)
		}
		if err := src.Read(at, &b); err != nil {
			return 0, err
		}
		block := rows.PackBatch(specs, &b)
		if err := w.Add(specs, block.Slice(specs, 0, block.Rows)); err != nil {
			return 0, err
		}
	}
	return shift, nil
}
