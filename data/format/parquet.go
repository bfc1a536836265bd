package format

import (
	"context"
	"errors"
	"slices"

	"github.com/gangline/gangline/data/file"
	"github.com/gangline/gangline/data/format/internal/parquetio"
	"github.com/gangline/gangline/data/table"
)

// openParquet implements opener.
func openParquet(ctx context.Context, spec *Spec, location string, like []table.Field) (table.Reader, error) {
	f, err := file.OpenRandom(ctx, location)
	if err != nil {
		return nil, err
	}
	r, err := newParquet(f, spec, location, like)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

func newParquet(f file.Random, spec *Spec, location string, like []table.Field) (table.Reader, error) {
	return parquetio.New(f, location, parquetio.Options{
		Kinds: spec.Columns,
		NaN:   slices.Contains(spec.Missing, "NaN"),
		Choose: func(has []table.Field) ([]table.Field, []int, error) {
			return selected(spec, location, has, like)
		},
	})
}
