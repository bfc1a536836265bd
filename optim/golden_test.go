package optim_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/gangline/gangline/optim"
)

// Tolerances against the golden numbers, of |got-want| / (1+|want|): PyTorch
// orders its operations otherwise, FTRL and LAMB are in float64 there.
const (
	golden64 = 1e-13
	golden32 = 4e-6
	goldenLR = 1e-14
)

// golden is the file that golden/optim.py writes.
type golden struct {
	Split, Rows, Dim     int
	Keep                 []int
	Start, Totals, Table []float64
	Sums                 [][]float64
	Touched              [][]int
	RowSums              [][]float64 `json:"row_sums"`
	Dense                []goldenCase
	ByRow                []goldenCase `json:"by_row"`
	Rates                []goldenRates
}

type goldenCase struct {
	Name, DType string
	Rule        optim.Rule
	Params      [][]float64 // after each of the steps Keep
	Slots       [][]float64 // after the last
}

type goldenRates struct {
	LR       float64
	Schedule optim.Schedule
	Rate     []float64
}

func readGolden(t *testing.T) golden {
	t.Helper()
	text, err := os.ReadFile("../golden/testdata/optim.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Dense) == 0 || len(g.ByRow) == 0 || len(g.Rates) == 0 {
		t.Fatal("the file is empty")
	}
	return g
}

// TestGoldenRates compares the rate of every schedule with PyTorch's schedulers.
func TestGoldenRates(t *testing.T) {
	for _, c := range readGolden(t).Rates {
		r := optim.Rule{Kind: optim.SGD, LR: c.LR, Schedule: c.Schedule}
		if err := r.Validate(); err != nil {
			t.Errorf("%+v: %v", c.Schedule, err)
		}
		for step, want := range c.Rate {
			if got := r.Rate(int64(step)); !(math.Abs(got-want) <= goldenLR) {
				t.Errorf("%+v: the rate of step %d is %v, want %v", c.Schedule, step, got, want)
			}
		}
	}
}

// TestGoldenDense compares every rule, with every flag on and off, with PyTorch's
// optimizers or the papers' algorithms in NumPy: two parameters, ten steps.
func TestGoldenDense(t *testing.T) {
	g := readGolden(t)
	kinds := map[optim.Kind]bool{}
	for _, c := range g.Dense {
		kinds[c.Rule.Kind] = true
		t.Run(c.Name+"/"+c.DType, func(t *testing.T) {
			if err := c.Rule.Validate(); err != nil {
				t.Fatal(err)
			}
			if c.DType == "f32" {
				goldenDense[float32](t, &g, c, golden32)
			} else {
				goldenDense[float64](t, &g, c, golden64)
			}
		})
	}
	for _, k := range optim.Kinds() {
		if !kinds[k] {
			t.Errorf("no golden numbers for rule %s", k)
		}
	}
}

func goldenDense[T optim.Float](t *testing.T, g *golden, c goldenCase, tol float64) {
	p := begin[T](c.Rule, g.Start)
	slots := newSlots[T](c.Rule, len(p))
	kept := 0
	for step, total := range g.Totals {
		sum := convert[T](g.Sums[step])
		total = c.Rule.Divisor(total, optim.SquareNorm(sum[:g.Split])+optim.SquareNorm(sum[g.Split:]))
		for _, r := range [][2]int{{0, g.Split}, {g.Split, len(p)}} {
			var part [][]T
			for _, s := range slots {
				part = append(part, s[r[0]:r[1]])
			}
			optim.Dense(c.Rule, int64(step), total, p[r[0]:r[1]], sum[r[0]:r[1]], part)
		}
		kept = compare(t, g, c, kept, step, p, tol)
	}
	compareSlots(t, c, slots, tol)
}

// TestGoldenRows compares lazy updates with an optimizer a row that only steps
// where its row is touched.
func TestGoldenRows(t *testing.T) {
	g := readGolden(t)
	for _, c := range g.ByRow {
		t.Run(c.Name+"/"+c.DType, func(t *testing.T) {
			if c.DType == "f32" {
				goldenRows[float32](t, &g, c, golden32)
			} else {
				goldenRows[float64](t, &g, c, golden64)
			}
		})
	}
}

func goldenRows[T optim.Float](t *testing.T, g *golden, c goldenCase, tol float64) {
	p := begin[T](c.Rule, g.Table)
	slots := newSlots[T](c.Rule, len(p))
	kept := 0
	for step, total := range g.Totals {
		optim.Rows(c.Rule, int64(step), total, p, g.Touched[step], g.Dim, convert[T](g.RowSums[step]), slots)
		kept = compare(t, g, c, kept, step, p, tol)
	}
	compareSlots(t, c, slots, tol)
}

// begin is where a case starts from: ftrl knows zeros only.
func begin[T optim.Float](r optim.Rule, start []float64) []T {
	if r.Kind == optim.FTRL {
		return make([]T, len(start))
	}
	return convert[T](start)
}

func convert[T optim.Float](v []float64) []T {
	out := make([]T, len(v))
	for i, x := range v {
		out[i] = T(x)
	}
	return out
}

// compare looks at the parameters after a step whose numbers were kept, and
// returns how many were compared so far.
func compare[T optim.Float](t *testing.T, g *golden, c goldenCase, kept, step int, p []T, tol float64) int {
	if kept == len(g.Keep) || step != g.Keep[kept] {
		return kept
	}
	near(t, c.Params[kept], p, tol, "after step %d: p", step)
	return kept + 1
}

func compareSlots[T optim.Float](t *testing.T, c goldenCase, slots [][]T, tol float64) {
	if len(slots) != len(c.Slots) {
		t.Fatalf("%d slots, want %d", len(slots), len(c.Slots))
	}
	for i, s := range slots {
		near(t, c.Slots[i], s, tol, "slot %d: s", i)
	}
}

func near[T optim.Float](t *testing.T, want []float64, got []T, tol float64, format string, at int) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf(format+" has %d elements, want %d", at, len(got), len(want))
	}
	for i, w := range want {
		if d := math.Abs(float64(got[i])-w) / (1 + math.Abs(w)); !(d <= tol) {
			t.Errorf(format+"[%d] is %v, want %v: apart by %.2g, the bound is %.2g", at, i, got[i], w, d, tol)
		}
	}
}
