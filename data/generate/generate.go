// Package generate makes up Criteo-shaped rows of which the truth is known, for
// tests and benchmarks without a download.
package generate

import (
	"math"

	"github.com/gangline/gangline/data/parse"
	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/data/table"
	"github.com/gangline/gangline/internal/mix"
)

// Source is a source of Criteo-shaped rows that are computed when read: row
// i is a pure function of (seed, i), so there is no memory a row and any number
// of ranks can read any rows.
//
// Categories are drawn from a power law: the popularity of category c of a
// field falls as (1+c/head)^-1.5 (a Lomax law cut off at the field's size). The
// label is 1 with probability sigmoid(z), and
//
//	raw = sum of a weight a category + slopes · num
//	      + sum of the products of two hidden factors, over all pairs of 8 fields
//	z   = gain * (raw - mean) + bias
//
// where gain, mean and bias are set such that z has the same spread for every
// seed and one label in four is 1. The best AUC is then about .825. A linear
// model of 120,000 rows comes to .802 and one with embeddings to .812: the
// products are what a linear model cannot say. Weights of rare categories are
// damped, as there is little to learn them from.
type Source struct {
	buckets int
	first   int
	rows    int
	problem problem
}

// New returns rows first to first+n of the problem that seed plants, with
// categories hashed into buckets. Cost: a few milliseconds.
func New(seed uint64, buckets, first, n int) *Source {
	g := &Source{buckets: buckets, first: first, rows: n}
	g.problem.plant(seed)
	return g
}

// Columns describes what Read delivers.
func (g *Source) Columns() []rows.ColumnSpec { return parse.CriteoSpecs(g.buckets) }

// Rows is the number of rows.
func (g *Source) Rows() int { return g.rows }

// Close does nothing: there is no file.
func (g *Source) Close() error { return nil }

// BadRows is 0: there is no file.
func (g *Source) BadRows() int { return 0 }

// BadSamples is empty.
func (g *Source) BadSamples() []table.RowError { return nil }

// Read fills b with the given rows, in the given order. Cost: about 1 µs a row.
func (g *Source) Read(at []int, b *rows.Batch) error {
	if err := rows.Check(at, g.rows); err != nil {
		return err
	}
	b.Reset(len(at), 3)
	label, num, cat := &b.Columns[0], &b.Columns[1], &b.Columns[2]
	label.Values = rows.Resize(label.Values, len(at))
	num.Values = rows.Resize(num.Values, len(at)*parse.CriteoNums)
	cat.Values = rows.Resize(cat.Values, len(at)*parse.CriteoCats)
	cat.Offsets = rows.Resize(cat.Offsets, len(at)+1)
	cat.IDs = rows.Resize(cat.IDs, len(at)*parse.CriteoCats)
	rows.Ones(cat.Values)
	cat.Offsets[0] = 0
	var e example
	for i, row := range at {
		g.problem.draw(&e, g.first+row)
		label.Values[i] = e.label
		copy(num.Values[i*parse.CriteoNums:], e.nums[:])
		ids := cat.IDs[i*parse.CriteoCats : (i+1)*parse.CriteoCats]
		for f, c := range e.cats {
			if c == absent {
				ids[f] = parse.MissingID(f, g.buckets)
				continue
			}
			ids[f] = parse.CategoryID(f, g.problem.value(f, c), g.buckets)
		}
		cat.Offsets[i+1] = int64((i + 1) * parse.CriteoCats)
	}
	return nil
}

// Probability is that of label 1, given everything else of the row. It panics if
// the row is not one of the source.
func (g *Source) Probability(row int) float64 {
	if err := rows.Check([]int{row}, g.rows); err != nil {
		panic(err.Error())
	}
	var e example
	g.problem.draw(&e, g.first+row)
	return e.probability
}

// example is one drawn row.
type example struct {
	label       float32
	probability float64
	ints        [parse.CriteoNums]int64 // absent: no value
	nums        [parse.CriteoNums]float32
	cats        [parse.CriteoCats]int64 // index in the field; absent: no value
}

// absent marks a value that the row does not have. Integers of -1 do occur.
const absent = math.MinInt64

// What a random number is for: the stream it is drawn from.
const (
	streamRow = iota + 1
	streamProbe
	streamWeight
	streamLatent
	streamValue
)

// problem is what a seed plants.
type problem struct {
	seed             uint64
	cats             [parse.CriteoCats]catField
	nums             [parse.CriteoNums]numField
	linked           [8]int    // fields whose categories interact
	latents          [8]uint64 // key of the factors of each of them
	rows             uint64    // key of the rows
	gain, mean, bias float64
}

// catField is a category field: size categories, the first few of which, about
// head, are popular.
type catField struct {
	size, head float64
	mass       float64 // of the uncut law below size
	missing    float64 // probability
	spread     float64 // standard deviation of the weights
	key        uint64  // of the field's weights
	values     uint64  // key of the numbers that stand for its categories
}

// numField is an integer field, of the same law.
type numField struct {
	scale, missing float64
	slope          float64
	from           int64
}

// How the planted weights are spread, before the gain: of a category, of the
// slope of a number, of a pair of factors.
const (
	catSpread  = 0.26
	numSpread  = 0.22
	pairSpread = 0.2
	// damping is the rank of the category whose weight is halved.
	damping = 60
	// zSpread is the standard deviation of z, and meanLabel the mean label.
	zSpread   = 1.55
	meanLabel = 0.25
	// maxInt bounds integer features.
	maxInt = 1 << 20
)

// plant chooses the weights. It costs a few milliseconds, for the statistics of
// the rows that calibrate z.
func (p *problem) plant(seed uint64) {
	p.seed = seed
	sizes := [parse.CriteoCats]float64{
		1000, 500, 20000, 10000, 300, 20, 8000, 600, 3, 15000, 4000, 20000, 3000,
		26, 7000, 18000, 10, 3500, 2000, 4, 20000, 18, 15, 12000, 80, 9000,
	}
	for f := range p.cats {
		c := &p.cats[f]
		c.size, c.head = sizes[f], 4
		c.mass = 1 - 1/math.Sqrt(1+c.size/c.head)
		c.spread = catSpread
		c.key = mix.Mix(p.key(streamWeight) + uint64(f)*mix.Golden)
		// Every third field has gaps, up to 45 percent of them.
		if f%3 == 2 {
			c.missing = 0.05 * float64(1+f/3)
		}
	}
	for f := range p.nums {
		n := &p.nums[f]
		n.scale = 1 + 2*float64(f)
		n.missing = 0.04 * float64(f%4)
		if f == 1 {
			n.from = -1
		}
		sign := 1 - 2*float64(f%2)
		n.slope = sign * numSpread * (0.5 + mix.Unit(mix.Mix(p.key(streamWeight)-uint64(f+1))))
	}
	// Fields of few categories, so that every product is seen often.
	p.linked = [8]int{5, 8, 13, 16, 19, 21, 22, 24}
	for side := range p.latents {
		p.latents[side] = mix.Mix(p.key(streamLatent) + uint64(side)*mix.Golden)
	}
	p.rows = p.key(streamRow)
	p.calibrate()
}

// calibrate sets gain, mean and bias from rows that no source has.
func (p *problem) calibrate() {
	const probes = 4096
	raw := make([]float64, probes)
	var e example
	p.gain = 1
	for i := range raw {
		raw[i] = p.features(&e, mix.Mix(p.key(streamProbe)+uint64(i)*mix.Golden))
		p.mean += raw[i] / probes
	}
	variance := 0.0
	for _, v := range raw {
		variance += (v - p.mean) * (v - p.mean) / probes
	}
	p.gain = zSpread / math.Sqrt(variance)
	lo, hi := -20.0, 20.0
	for range 40 {
		p.bias = (lo + hi) / 2
		sum := 0.0
		for _, v := range raw {
			sum += sigmoid(p.z(v))
		}
		if sum > meanLabel*probes {
			hi = p.bias
		} else {
			lo = p.bias
		}
	}
}

func (p *problem) z(raw float64) float64 { return p.gain*(raw-p.mean) + p.bias }

// key is the start of a stream of random numbers.
func (p *problem) key(stream int) uint64 { return mix.Mix(mix.Mix(p.seed) + uint64(stream)*mix.Golden) }

// draw computes a row.
func (p *problem) draw(e *example, row int) {
	key := mix.Mix(p.rows + uint64(row)*mix.Golden)
	e.probability = sigmoid(p.z(p.features(e, key)))
	e.label = 0
	if mix.Unit(mix.Mix(key-mix.Golden)) < e.probability {
		e.label = 1
	}
}

// features draws everything but the label from the stream of key and returns
// the raw score of it. The product of floats are rounded before they are added
// (float64(...)) wherever a sum decides a category, so that machines that fuse
// the two agree with those that do not.
func (p *problem) features(e *example, key uint64) (raw float64) {
	next := func() float64 {
		key += mix.Golden
		return mix.Unit(mix.Mix(key))
	}
	for f := range p.cats {
		c := &p.cats[f]
		e.cats[f] = absent
		u := next()
		if u >= c.missing {
			u = (u - c.missing) / (1 - c.missing)
			e.cats[f] = min(int64(lomax(float64(u*c.mass), c.head)), int64(c.size)-1)
		}
		raw += c.weight(e.cats[f])
	}
	for f := range p.nums {
		n := &p.nums[f]
		e.ints[f], e.nums[f] = absent, 0
		if u := next(); u >= n.missing {
			u = (u - n.missing) / (1 - n.missing)
			e.ints[f] = n.from + int64(min(lomax(u, n.scale), maxInt))
			e.nums[f] = parse.Numeric(e.ints[f])
		}
		raw += n.slope * float64(e.nums[f])
	}
	// The sum of all products of two, by the square of the sum.
	sum, squares := 0.0, 0.0
	for side, f := range p.linked {
		v := p.latent(side, e.cats[f])
		sum += v
		squares += v * v
	}
	raw += pairSpread * (sum*sum - squares) / 2
	return raw
}

// lomax is the inverse of 1-(1+x/scale)^-0.5 at u in [0,1).
func lomax(u, scale float64) float64 {
	v := 1 - u
	return scale * float64(1/float64(v*v)-1)
}

// weight is the planted weight of a category.
func (c *catField) weight(category int64) float64 {
	damp := 1.0
	if category != absent {
		damp = damping / (damping + float64(category))
	}
	return c.spread * damp * normal(mix.Mix(c.key^uint64(category)))
}

// latent is the planted factor of a category of a linked field.
func (p *problem) latent(side int, category int64) float64 {
	return normal(mix.Mix(p.latents[side] ^ uint64(category)))
}

// value is the number that stands for a category in a file, of 32 bits.
func (p *problem) value(field int, category int64) uint64 {
	return mix.Mix(p.cats[field].values^uint64(category)) >> 32
}

// normal turns random bits into a number that is close to normal, of mean 0 and
// variance 1: the scaled sum of four uniform ones.
func normal(h uint64) float64 {
	sum := h&0xffff + h>>16&0xffff + h>>32&0xffff + h>>48
	return (float64(sum)/0x1p16 - 2) * math.Sqrt(3)
}

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
