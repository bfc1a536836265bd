package feature

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/gangline/gangline/data/table"
)

// Version is that of the JSON document; Decode refuses others.
const Version = 1

// Fitted is a pipeline with all that it learned from the training rows. It does
// not change any more and is safe for concurrent use. Equal documents make equal
// features.
type Fitted struct {
	Version int `json:"version"`
	// Spec is what was declared.
	Spec Spec `json:"spec"`
	// Inputs are the fields that are read, which other files must have, too.
	Inputs []Input `json:"inputs"`
	// Rows is the number of good rows that it was fitted to.
	Rows int64 `json:"rows"`
	// Labels are the values of the label's column; none for numbers that count as
	// what they are.
	Labels []LabelValue `json:"labels,omitempty"`
	// Features are the declared features, or one a column, with what was learned.
	Features []State `json:"features"`

	bases []int32 // where each feature's ids begin
	ids   int
	dense int
}

// State is a feature and what was learned of it.
type State struct {
	Feature
	// Missing is how many rows had no value.
	Missing int64 `json:"missing,omitempty"`
	// Moments are those of each dense value, after clip and log.
	Moments []Moments `json:"moments,omitempty"`
	// Edges are the boundaries of intervals, declared or of quantiles.
	Edges []float64 `json:"edges,omitempty"`
	// Values are the texts of an exact vocabulary, ascending; Keys are the ids of
	// one over entries.
	Values []string `json:"values,omitempty"`
	Keys   []uint64 `json:"keys,omitempty"`

	salt  uint64
	index map[string]int32
	keys  map[uint64]int32
}

// Moments describe a dense value of the training rows.
type Moments struct {
	Count     int64   `json:"count"`
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"`
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
}

// nothing says that there were no rows.
func (f *Fitter) nothing() error {
	if f.refused != nil {
		return fmt.Errorf("feature: there are no rows to learn from, all were refused; the first: %w", f.refused)
	}
	return errors.New("feature: there are no rows to learn from")
}

// Fitted ends the fit. It is an error if nothing was learned that had to be.
func (f *Fitter) Fitted() (*Fitted, error) {
	if f.rows == 0 && f.NeedsRows() {
		return nil, f.nothing()
	}
	t := &Fitted{Version: Version, Spec: f.spec, Inputs: f.inputs, Rows: f.rows}
	var err error
	if t.Labels, err = f.checker.labels.fit(); err != nil {
		return nil, err
	}
	for i := range f.features {
		s, err := f.features[i].state(i)
		if err != nil {
			return nil, err
		}
		t.Features = append(t.Features, s)
	}
	// As if it came from a file: nothing differs then between the two.
	text, err := t.Encode()
	if err != nil {
		return nil, err
	}
	return Decode(text)
}

// state is what a feature learned.
func (t *fitting) state(i int) (State, error) {
	s := State{Feature: *t.Feature, Missing: t.missing, Edges: t.Boundaries}
	for _, m := range t.moments {
		s.Moments = append(s.Moments, Moments{m.n, m.mean, m.deviation(), m.lowest, m.highest})
	}
	if t.sample != nil {
		s.Edges = t.sample.boundaries(t.Quantiles)
	}
	switch {
	case t.values == nil:
	case t.values.full: // and not declared, else Add had said so
		s.Buckets = AutoBuckets
	default:
		least := int64(max(1, t.MinCount))
		s.Values, s.Keys = frequent(t.values.texts, least), frequent(t.values.ids, least)
		for _, v := range s.Values {
			if !utf8.ValidString(v) {
				return s, &DeclError{fmt.Sprintf("features[%d].buckets", i), fmt.Sprintf(
					"is missing: %q has the value %.40q, which is not UTF-8; convert the file, or say how many ids values are hashed into", t.Column, v)}
			}
		}
	}
	return s, nil
}

// Encode writes the JSON document.
func (f *Fitted) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(f); err != nil {
		return nil, fmt.Errorf("feature: %w", err)
	}
	return b.Bytes(), nil
}

// Decode reads the document of Encode. It refuses another version, unknown
// fields, and a document that contradicts itself.
func Decode(text []byte) (*Fitted, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("feature: not a document of fitted features: %w", err)
	}
	if head.Version != Version {
		return nil, fmt.Errorf("feature: the document has version %d, this program reads %d", head.Version, Version)
	}
	f, d := &Fitted{}, json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(f); err != nil {
		return nil, fmt.Errorf("feature: not a document of fitted features: %w", err)
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("feature: the document of fitted features contradicts itself: %w", err)
	}
	return f, f.prepare()
}

// check reports what no fit can have made.
func (f *Fitted) check() error {
	if err := f.Spec.Validate(); err != nil {
		return err
	}
	if len(f.Features) == 0 {
		return errors.New("there are no features")
	}
	for i, l := range f.Labels {
		if f.Spec.Task == Multiclass && l.Label != float32(i) || f.Spec.Task == Binary && l.Label != 0 && l.Label != 1 {
			return fmt.Errorf("label %q counts as %v", l.Value, l.Label)
		}
	}
	declared := Spec{Label: f.Spec.Label, Task: f.Spec.Task, Classes: f.Spec.Classes}
	for i := range f.Features {
		declared.Features = append(declared.Features, f.Features[i].Feature)
	}
	if err := declared.Validate(); err != nil {
		return err
	}
	for i := range f.Features {
		if err := f.Features[i].check(); err != nil {
			return fmt.Errorf("features[%d]: %w", i, err)
		}
	}
	return f.checkInputs()
}

// checkInputs binds the pipeline to the fields it says it was fitted to.
func (f *Fitted) checkInputs() error {
	fields := make([]table.Field, len(f.Inputs))
	for i, in := range f.Inputs {
		fields[i] = table.Field{Name: in.Name, Kind: in.Kind, Width: in.Width}
	}
	a, err := f.Bind(fields, Options{})
	if err != nil {
		return err
	}
	for i := range f.Features {
		s, b := &f.Features[i], &a.checker.features[i]
		if len(s.Moments) > 0 && len(s.Moments) != b.width || len(s.Keys) > 0 && b.kind != table.Entries || len(s.Values) > 0 && b.kind == table.Entries {
			return fmt.Errorf("features[%d] does not fit the column %q, %s", i, s.Column, b.kind)
		}
	}
	return nil
}

func (s *State) check() error {
	for i := 1; i < len(s.Values); i++ {
		if s.Values[i] <= s.Values[i-1] {
			return fmt.Errorf("value %.40q does not come after %.40q", s.Values[i], s.Values[i-1])
		}
	}
	for i := 1; i < len(s.Keys); i++ {
		if s.Keys[i] <= s.Keys[i-1] {
			return fmt.Errorf("key %d does not come after %d", s.Keys[i], s.Keys[i-1])
		}
	}
	exact := s.Kind == Category && s.Buckets == 0
	dense := s.Kind == Number && !s.Bucketed()
	switch {
	case !exact && len(s.Values)+len(s.Keys) > 0:
		return errors.New("has values, which its kind does not keep")
	case len(s.Values) > 0 && len(s.Keys) > 0:
		return errors.New("has values and keys")
	case dense != (len(s.Moments) > 0):
		return fmt.Errorf("has %d moments", len(s.Moments))
	case !s.Bucketed() && len(s.Edges) > 0 || !ascending(s.Edges):
		return fmt.Errorf("has the edges %v", s.Edges)
	case len(s.Boundaries) > 0 && !slices.Equal(s.Edges, s.Boundaries):
		return fmt.Errorf("has the edges %v, declared are %v", s.Edges, s.Boundaries)
	}
	return nil
}

// prepare indexes vocabularies and lays out dense values and ids.
func (f *Fitted) prepare() error {
	for i := range f.Features {
		s := &f.Features[i]
		s.salt = Salt(s.name())
		f.dense += s.Dense()
		if f.ids+s.IDs() > MaxIDs {
			return &DeclError{fmt.Sprintf("features[%d]", i), fmt.Sprintf("with it there are more than %d ids: hash into fewer buckets", MaxIDs)}
		}
		f.bases = append(f.bases, int32(f.ids))
		f.ids += s.IDs()
		if s.Values != nil {
			s.index = make(map[string]int32, len(s.Values))
		}
		for j, v := range s.Values {
			s.index[v] = int32(j) + unknownID + 1
		}
		if s.Keys != nil {
			s.keys = make(map[uint64]int32, len(s.Keys))
		}
		for j, k := range s.Keys {
			s.keys[k] = int32(j) + unknownID + 1
		}
	}
	return nil
}

// Dense is how many dense values a row has of the feature.
func (s *State) Dense() int {
	switch {
	case s.Kind != Number || s.Bucketed():
		return 0
	case s.Indicator:
		return len(s.Moments) + 1
	}
	return len(s.Moments)
}

// IDs is how many ids the feature has.
func (s *State) IDs() int {
	switch {
	case s.Buckets > 0:
		return s.Buckets + 1
	case s.Bucketed():
		return len(s.Edges) + 2
	case s.Kind == Category:
		return len(s.Values) + len(s.Keys) + 2
	}
	return 0
}

// Dense is how many dense values a row has.
func (f *Fitted) Dense() int { return f.dense }

// IDs is how many ids there are: those of rows are in [0, IDs).
func (f *Fitted) IDs() int { return f.ids }

// PerRow is how many ids every row has, 0 if that varies or there are none.
func (f *Fitted) PerRow() int {
	n := 0
	for i := range f.Features {
		s := &f.Features[i]
		if s.IDs() == 0 {
			continue
		}
		if f.listed(s) {
			return 0
		}
		n++
	}
	return n
}

// listed reports whether a feature has any number of ids a row.
func (f *Fitted) listed(s *State) bool {
	kind, ok := f.inputKind(s.Column)
	return ok && s.Kind == Category && listed(kind)
}

func (f *Fitted) inputKind(name string) (kind table.Kind, ok bool) {
	i := slices.IndexFunc(f.Inputs, func(in Input) bool { return in.Name == name })
	if i < 0 {
		return "", false
	}
	return f.Inputs[i].Kind, true
}

// Columns names the fields that are read.
func (f *Fitted) Columns() []string {
	names := make([]string, len(f.Inputs))
	for i, in := range f.Inputs {
		names[i] = in.Name
	}
	return names
}

// ClassNames are what the classes of the label are called, nil where they are called
// by their numbers.
func (f *Fitted) ClassNames() []string {
	if f.Spec.Task != Multiclass {
		return nil
	}
	names, named := make([]string, len(f.Labels)), false
	for i, l := range f.Labels {
		names[i] = l.Value
		named = named || l.Value != strconv.Itoa(i)
	}
	if !named {
		return nil
	}
	return names
}

// Weighted reports whether ids of rows have weights other than 1.
func (f *Fitted) Weighted() bool {
	return slices.ContainsFunc(f.Features, func(s State) bool {
		kind, _ := f.inputKind(s.Column)
		return s.UnitNorm || s.Kind == Category && kind == table.Entries
	})
}

// Digest is the SHA-256 of the document: equal digests, equal features.
func (f *Fitted) Digest() (string, error) {
	text, err := f.Encode()
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// scale returns what a dense value is moved by, then divided by.
func (s *State) scale(i int) (shift, unit float64) {
	m := s.Moments[i]
	switch s.Normalize {
	case "standard":
		shift, unit = m.Mean, m.Deviation
	case "minmax":
		shift, unit = m.Min, m.Max-m.Min
	default:
		return 0, 1
	}
	// A column that does not vary has a deviation of rounding errors at most.
	if unit <= 1e-12*max(math.Abs(m.Min), math.Abs(m.Max)) {
		unit = 1
	}
	return shift, unit
}
