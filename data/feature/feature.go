// Package feature turns raw fields into what models take: a label, dense values
// and ids.
//
// A Spec declares the features. A Fitter sees the training rows once, block by
// block, and makes a Fitted: vocabularies, means, boundaries. Its Applier turns
// blocks into Rows, for training, evaluation and prediction alike. A Fitted is
// saved as one JSON document.
//
// Ids of a feature are a range of their own within the ids of all features, in
// the order of the features:
//
//	| feature                    | ids                                                    |
//	|----------------------------|--------------------------------------------------------|
//	| category, exact            | 0 missing, 1 unknown, then the values in ascending order |
//	| category, hashed; cross    | 0 missing, then the buckets                            |
//	| number with boundaries     | 0 missing, then the intervals in ascending order       |
//
// Reading order: feature.go (what is declared), resolve.go (against the fields of
// a file), check.go and label.go (which rows are good), fit.go, fitted.go,
// apply.go.
package feature

import "github.com/gangline/gangline/data/table"

// Kind says what a feature makes of its column.
type Kind string

// The kinds of features.
const (
	// Number makes a dense value, or one id if there are boundaries or quantiles.
	Number Kind = "number"
	// Category makes one id a value.
	Category Kind = "category"
	// Cross makes one hashed id of the values of several columns together.
	Cross Kind = "cross"
)

// Feature declares one feature. Fields that its kind does not use must be left
// out.
type Feature struct {
	// Name is that of the feature in errors and in crosses; "" is its column, or
	// the columns of a cross with a * between them. It salts the hash, so that
	// equal values of two features are two categories.
	Name string `yaml:"name,omitempty" json:"name,omitempty"`
	// Kind is number, category or cross.
	Kind Kind `yaml:"kind,omitempty" json:"kind"`
	// Column is the field of the file (number, category).
	Column string `yaml:"column,omitempty" json:"column,omitempty"`
	// Columns are at least two fields of one value a row, or names of number
	// features with boundaries or quantiles (cross).
	Columns []string `yaml:"columns,omitempty" json:"columns,omitempty"`

	// Clip is the lowest and the highest value; what lies beyond is moved there
	// (number). It comes first.
	Clip []float64 `yaml:"clip,omitempty" json:"clip,omitempty"`
	// Log is signed, sign(x)·log(1+|x|), or clipped, log(1+max(x,0)) (number). It
	// comes second.
	Log string `yaml:"log,omitempty" json:"log,omitempty"`
	// Normalize is standard, (x-mean)/deviation, or minmax, (x-min)/(max-min),
	// with the statistics of the training rows (number, dense). It comes third. A
	// column that does not vary becomes 0.
	Normalize string `yaml:"normalize,omitempty" json:"normalize,omitempty"`
	// Fill is what stands for a missing value: mean, or a number as it could
	// stand in the file (number, dense); "" is mean.
	Fill string `yaml:"fill,omitempty" json:"fill,omitempty"`
	// Indicator adds a dense value, 1 where the value is missing (number, dense).
	Indicator bool `yaml:"indicator,omitempty" json:"indicator,omitempty"`
	// Boundaries part numbers into intervals, [b, c) between two neighbours, and
	// make the feature an id (number). They are compared after clip and log.
	Boundaries []float64 `yaml:"boundaries,omitempty" json:"boundaries,omitempty"`
	// Quantiles is the number of intervals with equally many training rows in
	// each (number): boundaries that the rows decide.
	Quantiles int `yaml:"quantiles,omitempty" json:"quantiles,omitempty"`

	// MinCount is how often a value must stand in the training rows to get an id
	// of its own; others are unknown (category, exact). 0 is 1.
	MinCount int `yaml:"min_count,omitempty" json:"min_count,omitempty"`
	// Buckets is the number of ids that values are hashed into (category; cross,
	// which needs it). 0 makes an exact vocabulary.
	Buckets int `yaml:"buckets,omitempty" json:"buckets,omitempty"`
	// UnitNorm scales the weights of a row's entries to a Euclidean norm of 1
	// (category over a list).
	UnitNorm bool `yaml:"unit_norm,omitempty" json:"unit_norm,omitempty"`
}

// Label declares the column that is predicted.
type Label struct {
	// Column is the field of the file.
	Column string `yaml:"column" json:"column"`
	// Positive are the values that count as 1 (two classes). Without, the values
	// must be numbers: 1, and 0 or -1.
	Positive []string `yaml:"positive,omitempty" json:"positive,omitempty"`
	// Negative are the values that count as 0. Without, they are those of the
	// training rows that are not positive.
	Negative []string `yaml:"negative,omitempty" json:"negative,omitempty"`
	// Classes are the values in the order of the classes' numbers. Without, they
	// are those of the training rows in ascending order; whole numbers from 0
	// are the classes' numbers already.
	Classes []string `yaml:"classes,omitempty" json:"classes,omitempty"`
}

// Task is what the loss demands of labels.
type Task string

// The tasks.
const (
	Binary     Task = "binary"     // 0 or 1
	Multiclass Task = "multiclass" // the number of a class
	Regression Task = "regression" // any finite number
)

// Spec declares a pipeline.
type Spec struct {
	// Features in the order of dense values and ids. Without any, every column of
	// numbers is a normalised dense value, missing ones filled with the mean, and
	// every other column a category, exact up to a million distinct values and
	// hashed beyond.
	Features []Feature `json:"features"`
	Label    Label     `json:"label"`
	Task     Task      `json:"task"`
	// Classes is how many classes the model has; 0: as many as the rows have.
	Classes int `json:"classes,omitempty"`
	// Weight is the column of a row's weight, a finite number not below 0; ""
	// gives all rows the same.
	Weight string `json:"weight,omitempty"`
	// Ignore are columns that no feature is made of where none is declared.
	Ignore []string `json:"ignore,omitempty"`
}

// Limits of what is fitted.
const (
	// MaxDistinct is the most distinct values of an exact vocabulary, before
	// MinCount is applied.
	MaxDistinct = 1_000_000
	// MaxVocabularyBytes is the most that the values of one vocabulary hold.
	MaxVocabularyBytes = 256 << 20
	// AutoBuckets is what a column without a declared feature is hashed into once
	// it has more than MaxDistinct values.
	AutoBuckets = 1 << 20
	// MaxIDs bounds the ids of all features together.
	MaxIDs = 1<<31 - 1
	// MaxQuantiles bounds the intervals that rows decide.
	MaxQuantiles = 4096
	// maxLabels bounds the label values that training rows may teach.
	maxLabels = 100_000
)

// Ids that features begin with.
const (
	missingID = 0
	unknownID = 1 // exact vocabularies
)

// Bucketed reports whether a number becomes an id.
func (f *Feature) Bucketed() bool {
	return f.Kind == Number && (len(f.Boundaries) > 0 || f.Quantiles > 0)
}

// DeclError says which part of a declaration is wrong and what to change.
type DeclError struct {
	Field string // "features[2].buckets", "label.column"
	Fix   string
}

// Error implements error.
func (e *DeclError) Error() string { return e.Field + ": " + e.Fix }

// listed reports whether a kind of field has any number of values a row.
func listed(k table.Kind) bool {
	return k == table.Texts || k == table.Entries || k == table.Numbers
}
