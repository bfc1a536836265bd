package generate

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/data/parse"
	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/internal/mix"
)

func rowRange(lo, hi int) []int {
	rows := make([]int, hi-lo)
	for i := range rows {
		rows[i] = lo + i
	}
	return rows
}

// auc is the area under the ROC curve; scores are taken to be distinct.
func auc(score []float64, label []float32) float64 {
	at := rowRange(0, len(score))
	slices.SortFunc(at, func(i, j int) int {
		switch {
		case score[i] < score[j]:
			return -1
		case score[i] > score[j]:
			return 1
		}
		return 0
	})
	sum, pos := 0.0, 0.0
	for rank, i := range at {
		if label[i] == 1 {
			sum += float64(rank + 1)
			pos++
		}
	}
	neg := float64(len(label)) - pos
	return (sum - pos*(pos+1)/2) / (pos * neg)
}

// machine is a factorization machine (Rendle, 2010) trained by Adagrad: the
// smallest wide-and-embedding model there is.
type machine struct {
	dim         int
	wide, wideG []float64
	deep, deepG []float64
	num, numG   [parse.CriteoNums + 1]float64
	sum         []float64
}

func newMachine(buckets, dim int) *machine {
	m := &machine{dim: dim, wide: make([]float64, buckets), wideG: make([]float64, buckets)}
	m.deep, m.deepG = make([]float64, buckets*dim), make([]float64, buckets*dim)
	m.sum = make([]float64, dim)
	for i := range m.deep {
		m.deep[i] = 0.02 * normal(mix.Mix(uint64(i)))
	}
	return m
}

func (m *machine) score(nums []float32, ids []int64) float64 {
	z := m.num[parse.CriteoNums]
	for j, x := range nums {
		z += m.num[j] * float64(x)
	}
	clear(m.sum)
	squares := 0.0
	for _, id := range ids {
		z += m.wide[id]
		for k, v := range m.deep[int(id)*m.dim : int(id+1)*m.dim] {
			m.sum[k] += v
			squares += v * v
		}
	}
	for _, s := range m.sum {
		z += s * s / 2
	}
	return z - squares/2
}

func (m *machine) learn(label float32, nums []float32, ids []int64, rate float64) {
	g := sigmoid(m.score(nums, ids)) - float64(label)
	step := func(w, acc *float64, g, rate float64) {
		*acc += g * g
		*w -= rate * g / math.Sqrt(*acc+1e-3)
	}
	for j, x := range nums {
		step(&m.num[j], &m.numG[j], g*float64(x), rate)
	}
	step(&m.num[parse.CriteoNums], &m.numG[parse.CriteoNums], g, rate)
	for _, id := range ids {
		step(&m.wide[id], &m.wideG[id], g, rate)
		for k := range m.dim {
			at := int(id)*m.dim + k
			step(&m.deep[at], &m.deepG[at], g*(m.sum[k]-m.deep[at]), rate)
		}
	}
}

// clicks is a batch of Criteo-shaped rows, by row.
type clicks struct{ rows.Batch }

func (c *clicks) row(i int) (label float32, nums []float32, ids []int64) {
	return c.Columns[0].Values[i], c.Columns[1].Values[i*parse.CriteoNums : (i+1)*parse.CriteoNums],
		c.Columns[2].IDs[i*parse.CriteoCats : (i+1)*parse.CriteoCats]
}

func readClicks(t *testing.T, src *Source) *clicks {
	c := new(clicks)
	if err := src.Read(rowRange(0, src.Rows()), &c.Batch); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestGeneratedLearnable trains small models and holds them against the best
// possible AUC: both must come close, the one with embeddings closer.
func TestGeneratedLearnable(t *testing.T) {
	const buckets, trainRows, evalRows = 1 << 17, 120_000, 20_000
	train := readClicks(t, New(7, buckets, 0, trainRows))
	src := New(7, buckets, trainRows, evalRows)
	eval := readClicks(t, src)
	labels := eval.Columns[0].Values
	scores := make([]float64, evalRows)
	for i := range scores {
		scores[i] = src.Probability(i)
	}
	best := auc(scores, labels)
	share := make(map[int]float64)
	for _, dim := range []int{0, 4} {
		m := newMachine(buckets, dim)
		for range 2 {
			for i := range trainRows {
				label, nums, ids := train.row(i)
				m.learn(label, nums, ids, 0.02)
			}
		}
		for i := range scores {
			_, nums, ids := eval.row(i)
			scores[i] = m.score(nums, ids)
		}
		share[dim] = auc(scores, labels) / best
	}
	t.Logf("best AUC %.4f; linear reaches %.4f of it, with embeddings %.4f", best, share[0], share[4])
	if share[0] < 0.96 || share[4] < 0.975 || share[4] < share[0]+0.005 {
		t.Error("the planted problem is not learnable as it should be")
	}
}

// TestGeneratedBestAUC: whatever the seed, the best AUC and the mean label are
// where the documentation says.
func TestGeneratedBestAUC(t *testing.T) {
	for seed := range uint64(6) {
		src := New(seed, 1000, 1<<30, 20_000)
		labels := readClicks(t, src).Columns[0].Values
		scores, mean := make([]float64, len(labels)), 0.0
		for i := range scores {
			scores[i] = src.Probability(i)
			mean += float64(labels[i]) / float64(len(labels))
		}
		if best := auc(scores, labels); best < 0.80 || best > 0.85 || math.Abs(mean-meanLabel) > 0.015 {
			t.Errorf("seed %d: best AUC %.4f, mean label %.4f", seed, best, mean)
		}
	}
}

// TestGeneratedCalibrated: among rows of like probability the label is 1 about
// that often, so Probability is the one the labels were drawn with.
func TestGeneratedCalibrated(t *testing.T) {
	const n = 40_000
	src := New(3, 1000, 0, n)
	labels := readClicks(t, src).Columns[0].Values
	var count, sum, want [10]float64
	for i := range n {
		p := src.Probability(i)
		bin := int(p * 10)
		count[bin]++
		sum[bin] += float64(labels[i])
		want[bin] += p
	}
	for bin, c := range count {
		if sigma := math.Sqrt(c * 0.25); math.Abs(sum[bin]-want[bin]) > 4*sigma {
			t.Errorf("probabilities near %.2f: %v labels of %v are 1, want about %.0f", float64(bin)/10, sum[bin], c, want[bin])
		}
	}
}

// TestGeneratedRanges: row i is the same whatever range it is read in, other
// rows and other seeds differ.
func TestGeneratedRanges(t *testing.T) {
	read := func(s *Source, at ...int) rows.Batch {
		var b rows.Batch
		if err := s.Read(at, &b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	base, shifted, seeded := New(1, 5000, 0, 100), New(1, 5000, 90, 100), New(2, 5000, 0, 100)
	if diff := cmp.Diff(read(base, 95, 91), read(shifted, 5, 1)); diff != "" {
		t.Errorf("the same rows in another range differ:\n%s", diff)
	}
	if cmp.Equal(read(base, 5), read(shifted, 5)) || cmp.Equal(read(base, 5), read(seeded, 5)) {
		t.Error("other rows or another seed gave the same row")
	}
	if err := base.Read([]int{100}, new(rows.Batch)); err == nil {
		t.Error("a row beyond the end was read")
	}
}

// TestWriteRange: only rows that there are can be written.
func TestWriteRange(t *testing.T) {
	g := New(5, 100, 0, 10)
	var text bytes.Buffer
	if err := WriteCriteo(&text, g, 3, 7); err != nil || bytes.Count(text.Bytes(), []byte("\n")) != 7 {
		t.Errorf("7 rows became %d lines, %v", bytes.Count(text.Bytes(), []byte("\n")), err)
	}
	for _, r := range [][2]int{{-1, 1}, {0, -1}, {4, 7}} {
		if err := WriteCriteo(&text, g, r[0], r[1]); err == nil {
			t.Errorf("%d rows from %d on were written", r[1], r[0])
		}
	}
}
