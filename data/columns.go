package data

import "github.com/gangline/gangline/data/parse"

// Columns returns what Open would deliver, without reading the rows where the
// spec alone says it: always for criteo and generated, and for libsvm with
// Features, and tables with Fitted; of idx it reads one row, of text the file. Servers, which hold parameters but never a row, plan with it.
func Columns(spec Spec) ([]ColumnSpec, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	switch {
	case spec.Format == "criteo", spec.Format == "generated":
		return parse.CriteoSpecs(spec.Buckets), nil
	case spec.Format == "libsvm" && spec.Features > 0:
		return parse.LibsvmSpecs(spec.Features), nil
	case spec.Fitted != nil:
		return preparedSpecs(&spec), nil
	case spec.Format == "idx":
		spec.Limit = 1
	}
	src, err := Open(spec)
	if err != nil {
		return nil, err
	}
	return src.Columns(), src.Close()
}
