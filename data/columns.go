package data

import (
	"context"

	"github.com/gangline/gangline/data/cache"
	"github.com/gangline/gangline/data/parse"
	"github.com/gangline/gangline/data/prepare"
)

// Columns returns what Open would deliver, without reading the rows where the
// spec alone says it: always for criteo and generated, for libsvm with Features and
// for tables with Fitted; of idx it reads one row, of cache the header, of text the
// file.
func Columns(ctx context.Context, spec Spec) ([]ColumnSpec, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	switch {
	case spec.Format == "criteo", spec.Format == "generated":
		return spec.columns(parse.CriteoSpecs(spec.Buckets)), nil
	case spec.Format == "libsvm" && spec.Features > 0:
		return spec.columns(parse.LibsvmSpecs(spec.Features)), nil
	case spec.Format == "cache":
		f, err := cache.Open(spec.Path)
		if err != nil {
			return nil, err
		}
		return f.Columns, f.Close()
	case spec.Fitted != nil:
		return spec.columns(prepare.Columns(spec.Fitted, spec.Group)), nil
	case spec.Format == "idx":
		spec.Limit = 1
	}
	src, err := Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return src.Columns(), src.Close()
}
