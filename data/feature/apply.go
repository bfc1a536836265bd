package feature

import (
	"fmt"
	"math"
	"sort"

	"github.com/gangline/gangline/data/table"
	"github.com/gangline/gangline/internal/mix"
)

// Rows are what models take, made of one block. They are reused: warm ones
// allocate nothing.
type Rows struct {
	N      int
	Labels []float32
	// Weights has one a row, nil without a weight column.
	Weights []float32
	// Dense has Fitted.Dense values a row.
	Dense []float32
	// IDs and Values of row i are those from Offsets[i] to Offsets[i+1]; Values is
	// nil if all are 1.
	IDs     []int32
	Values  []float32
	Offsets []int
	// Groups has the hash of each row's group, nil without a group column.
	Groups []uint64
	// Kept is the row of the block that each row was made of.
	Kept []int
	// Bad says which rows of the block were left out, and why.
	Bad []table.RowError
}

// Applier makes features of the blocks of one file. It is used by one goroutine.
type Applier struct {
	fitted  *Fitted
	checker *checker
	group   int // index of the column, -1: none
	norms   bool
	at      []int // where the next id of each row goes
	text    []byte
}

// Options say what is asked of rows beside their features.
type Options struct {
	// Unlabelled says that rows have neither label nor weight, as for prediction;
	// labels are then NaN and there are no weights.
	Unlabelled bool
	// Filter passes over rows that are not meant; nil: all are.
	Filter Filter
	// Group is the column that tells which rows belong together, for metrics by
	// group; "": none.
	Group string
}

// Bind prepares to apply the pipeline to rows with the given fields, which need
// not stand in the order of the training rows; others are passed over.
func (f *Fitted) Bind(fields []table.Field, o Options) (*Applier, error) {
	c := newColumns(fields)
	k, err := newChecker(&f.Spec, c, !o.Unlabelled)
	if err != nil {
		return nil, err
	}
	if k.labels != nil && f.Labels != nil {
		k.labels.learn, k.labels.values = false, map[string]float32{}
		for _, l := range f.Labels {
			k.labels.values[l.Value] = l.Label
		}
	}
	k.filter = o.Filter
	a := &Applier{fitted: f, checker: k, group: -1}
	if o.Group != "" {
		if a.group, err = c.find("group", o.Group); err != nil {
			return nil, err
		}
		if f := fields[a.group]; listed(f.Kind) {
			return nil, &DeclError{"group", fmt.Sprintf("%q has several values a row: a group is one", f.Name)}
		}
	}
	states := make([]Feature, len(f.Features))
	for i := range states {
		states[i] = f.Features[i].Feature
		a.norms = a.norms || states[i].UnitNorm
	}
	if k.features, err = bind(states, c, false); err != nil {
		return nil, err
	}
	return a, f.sameInputs(c.inputs())
}

// sameInputs refuses fields that are not what the pipeline was fitted to.
func (f *Fitted) sameInputs(now []Input) error {
	fitted := make(map[string]Input, len(f.Inputs))
	for _, in := range f.Inputs {
		fitted[in.Name] = in
	}
	for _, in := range now {
		was, ok := fitted[in.Name]
		if !ok {
			continue // bind has found what it needs
		}
		single := func(k table.Kind) bool { return k == table.Number || k == table.Integer }
		if was.Width == in.Width && (was.Kind == in.Kind || single(was.Kind) && single(in.Kind)) {
			continue
		}
		return &DeclError{"features", fmt.Sprintf("the column %q is %s here and %s in the training rows: declare its type where the file is opened", in.Name, in.describe(), was.describe())}
	}
	return nil
}

func (in Input) describe() string {
	if in.Width > 0 {
		return fmt.Sprintf("%s[%d]", in.Kind, in.Width)
	}
	return string(in.Kind)
}

// Apply fills r with the features of a block. Rows that cannot be used (a label
// the loss does not know, a number that is not finite) are left out and described
// in r.Bad. Slices of r that come from the Applier are valid until its next Apply.
// Cost: some tens of ns a value.
func (a *Applier) Apply(b *table.Block, r *Rows) {
	a.checker.rows(b)
	k := a.checker
	r.N, r.Kept, r.Bad, r.Labels, r.Weights, r.Groups = len(k.kept), k.kept, k.bad, k.target, nil, r.Groups[:0]
	if k.weight >= 0 {
		r.Weights = k.weights
	}
	if a.group >= 0 {
		for _, row := range k.kept {
			r.Groups = append(r.Groups, a.hashed(b, a.group, k.fields[a.group].Kind, row, fnvOffset))
		}
	}
	a.layOut(b, r)
	dense := 0
	for i := range a.fitted.Features {
		s := &a.fitted.Features[i]
		switch {
		case s.Dense() > 0:
			a.applyDense(i, &b.Columns[k.features[i].field], r, dense)
			dense += s.Dense()
		case s.Kind == Number:
			a.applyIntervals(i, &b.Columns[k.features[i].field], r)
		case s.Kind == Cross:
			a.applyCross(i, b, r)
		case listed(k.features[i].kind):
			a.applyList(i, &b.Columns[k.features[i].field], r)
		default:
			a.applySingle(i, &b.Columns[k.features[i].field], r)
		}
	}
}

// layOut makes room for everything and says where the ids of each row begin.
func (a *Applier) layOut(b *table.Block, r *Rows) {
	r.Dense = resize(r.Dense, r.N*a.fitted.Dense())
	r.Offsets, a.at = resize(r.Offsets, r.N+1), resize(a.at, r.N)
	single := 0
	for i := range a.fitted.Features {
		if s := &a.fitted.Features[i]; s.IDs() > 0 && !listed(a.checker.features[i].kind) {
			single++
		}
	}
	for i := range a.at {
		a.at[i] = single
	}
	for i := range a.fitted.Features {
		f := &a.checker.features[i]
		if f.Kind != Category || !listed(f.kind) {
			continue
		}
		c := &b.Columns[f.field]
		for n, row := range r.Kept {
			if missing(c, row) {
				a.at[n]++
			} else {
				a.at[n] += c.Offsets[row+1] - c.Offsets[row]
			}
		}
	}
	total := 0
	for i, n := range a.at {
		r.Offsets[i], a.at[i] = total, total
		total += n
	}
	r.Offsets[r.N] = total
	r.IDs = resize(r.IDs, total)
	r.Values = r.Values[:0]
	if a.fitted.Weighted() {
		r.Values = resize(r.Values, total)
		for i := range r.Values {
			r.Values[i] = 1
		}
	} else {
		r.Values = nil
	}
}

// put appends an id of feature i to row n and returns where it stands.
func (a *Applier) put(r *Rows, i, n int, id int32) int {
	at := a.at[n]
	r.IDs[at] = a.fitted.bases[i] + id
	a.at[n]++
	return at
}

// transform is what happens to a number before anything is learned of it.
func (f *Feature) transform(v float64) float64 {
	if len(f.Clip) == 2 {
		v = min(max(v, f.Clip[0]), f.Clip[1])
	}
	switch f.Log {
	case "signed":
		v = math.Copysign(math.Log1p(math.Abs(v)), v)
	case "clipped":
		v = math.Log1p(max(v, 0))
	}
	return v
}

// applyDense writes the values of a number from place on in every row.
func (a *Applier) applyDense(i int, c *table.Column, r *Rows, place int) {
	s, f := &a.fitted.Features[i], &a.checker.features[i]
	width, stride := len(s.Moments), a.fitted.Dense()
	for j := range width {
		shift, unit := s.scale(j)
		fill, _ := s.fill()
		if math.IsNaN(fill) {
			fill = s.Moments[j].Mean
		} else {
			fill = s.transform(fill)
		}
		for n, row := range r.Kept {
			v := fill
			switch {
			case missing(c, row):
			case f.kind == table.Numbers:
				v = s.transform(c.Numbers[c.Offsets[row]+j])
			default:
				v = s.transform(numberAt(c, f.kind, row))
			}
			r.Dense[n*stride+place+j] = narrow((v - shift) / unit)
		}
	}
	if !s.Indicator {
		return
	}
	for n, row := range r.Kept {
		at := n*stride + place + width
		r.Dense[at] = 0
		if missing(c, row) {
			r.Dense[at] = 1
		}
	}
}

// narrow is v as a float32, the largest one if it is beyond all.
func narrow(v float64) float32 {
	return float32(min(max(v, -math.MaxFloat32), math.MaxFloat32))
}

// interval is the id of a row's interval.
func (s *State) interval(c *table.Column, kind table.Kind, row int) int32 {
	if missing(c, row) {
		return missingID
	}
	v := s.transform(numberAt(c, kind, row))
	return 1 + int32(sort.Search(len(s.Edges), func(i int) bool { return s.Edges[i] > v }))
}

func (a *Applier) applyIntervals(i int, c *table.Column, r *Rows) {
	s, kind := &a.fitted.Features[i], a.checker.features[i].kind
	for n, row := range r.Kept {
		a.put(r, i, n, s.interval(c, kind, row))
	}
}

// applySingle is for categories with one value a row.
func (a *Applier) applySingle(i int, c *table.Column, r *Rows) {
	s, kind := &a.fitted.Features[i], a.checker.features[i].kind
	salt := s.salt
	for n, row := range r.Kept {
		id := int32(missingID)
		if !missing(c, row) {
			value := a.text[:0]
			if kind == table.Text {
				value = text(c, row)
			} else {
				a.text = AppendText(value, c, kind, row)
				value = a.text
			}
			id = s.textID(salt, value)
		}
		a.put(r, i, n, id)
	}
}

// textID is the id of a value's text.
func (s *State) textID(salt uint64, value []byte) int32 {
	if s.Buckets > 0 {
		return 1 + bucket(hashText(salt, value), s.Buckets)
	}
	if id, ok := s.index[string(value)]; ok {
		return id
	}
	return unknownID
}

// keyID is the id of an entry's id.
func (s *State) keyID(salt, key uint64) int32 {
	if s.Buckets > 0 {
		return 1 + bucket(hashID(salt, key), s.Buckets)
	}
	if id, ok := s.keys[key]; ok {
		return id
	}
	return unknownID
}

// applyList is for categories with any number of values a row.
func (a *Applier) applyList(i int, c *table.Column, r *Rows) {
	s, kind := &a.fitted.Features[i], a.checker.features[i].kind
	salt := s.salt
	for n, row := range r.Kept {
		first := a.at[n]
		if missing(c, row) {
			a.put(r, i, n, missingID)
			continue
		}
		for e := c.Offsets[row]; e < c.Offsets[row+1]; e++ {
			if kind == table.Texts {
				a.put(r, i, n, s.textID(salt, text(c, e)))
				continue
			}
			at := a.put(r, i, n, s.keyID(salt, uint64(c.Integers[e])))
			if c.Numbers != nil {
				r.Values[at] = float32(c.Numbers[e])
			}
		}
		if s.UnitNorm {
			UnitNorm(r.Values[first:a.at[n]])
		}
	}
}

// UnitNorm scales weights to a Euclidean norm of 1, unless all are 0.
func UnitNorm(w []float32) {
	sum := 0.0
	for _, v := range w {
		sum += float64(float64(v) * float64(v))
	}
	if sum == 0 {
		return
	}
	norm := math.Sqrt(sum)
	for i, v := range w {
		w[i] = float32(float64(v) / norm)
	}
}

// applyCross hashes the values of several columns together.
func (a *Applier) applyCross(i int, b *table.Block, r *Rows) {
	s, f := &a.fitted.Features[i], &a.checker.features[i]
	salt := s.salt
	for n, row := range r.Kept {
		h := salt
		for p := range f.parts {
			h = mix.Mix(h) ^ a.partHash(&f.parts[p], b, row)
		}
		a.put(r, i, n, 1+bucket(mix.Mix(h), s.Buckets))
	}
}

// partHash is the hash of a part of a cross: of a value, or of an interval.
func (a *Applier) partHash(p *part, b *table.Block, row int) uint64 {
	if p.feature < 0 {
		return a.hashed(b, p.field, p.kind, row, fnvOffset)
	}
	f := &a.checker.features[p.feature]
	return hashID(fnvOffset, uint64(a.fitted.Features[p.feature].interval(&b.Columns[f.field], f.kind, row)))
}

// hashed is the hash of a single value.
func (a *Applier) hashed(b *table.Block, field int, kind table.Kind, row int, salt uint64) uint64 {
	c := &b.Columns[field]
	if missing(c, row) {
		return missingHash
	}
	a.text = AppendText(a.text[:0], c, kind, row)
	return hashText(salt, a.text)
}

// resize sets the length of s and keeps its memory where it is large enough.
func resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]T, n, n+n/2)
}
