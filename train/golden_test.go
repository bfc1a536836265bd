package train

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/params"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/train/input"
)

// golden is golden/testdata/models.json, which golden/models.py writes and
// explains.
type golden struct {
	Rows   int
	Models []goldenModel
}

type goldenModel struct {
	Name             string
	Model, Optimizer json.RawMessage
	Columns          []struct {
		Name, Kind string
		Dim        int
		PerRow     int `json:"per_row"`
	}
	Params map[string][]int
	Losses []float64
}

// goldenBits is the number that stands for element i of a name.
func goldenBits(name string, i int) uint32 {
	x := uint32(i)*2654435761 + crc32.ChecksumIEEE([]byte(name))
	x ^= x >> 15
	x *= 2246822519
	return x ^ x>>13
}

func goldenUnit(name string, i int) float64 { return (float64(goldenBits(name, i)%2049) - 1024) / 1024 }

func goldenID(name string, i, dim int) int64 { return int64(goldenBits(name, i) % uint32(dim)) }

// goldenSource is the batch of a model; it is one in memory.
type goldenSource struct {
	rows    int
	specs   []data.ColumnSpec
	columns []data.Column // of all rows
}

func newGoldenSource(rows int, m *goldenModel, classes int) *goldenSource {
	s := &goldenSource{rows: rows}
	for _, c := range m.Columns {
		spec := data.ColumnSpec{Name: c.Name, Kind: data.ColumnKind(c.Kind), Dim: c.Dim, PerRow: c.PerRow}
		col := data.Column{}
		for r := range rows {
			if spec.Kind == data.DenseColumn {
				for range c.Dim {
					col.Values = append(col.Values, float32(goldenUnit(c.Name, len(col.Values))))
				}
				continue
			}
			n := c.PerRow
			if n == 0 {
				n = r % 4
			}
			col.Offsets = append(col.Offsets, int64(len(col.IDs)))
			for range n {
				e, weight := len(col.IDs), 1.0
				if c.PerRow == 0 {
					weight = goldenUnit(c.Name+".weights", e)
				}
				col.IDs = append(col.IDs, goldenID(c.Name, e, c.Dim))
				col.Values = append(col.Values, float32(weight))
			}
		}
		col.Offsets = append(col.Offsets, int64(len(col.IDs)))
		s.specs, s.columns = append(s.specs, spec), append(s.columns, col)
	}
	label := data.ColumnSpec{Name: "label", Kind: data.DenseColumn, Dim: 1}
	if m.Columns[0].Name == "tokens" {
		label.Dim = m.Columns[0].PerRow
	}
	var values []float32
	for i := range rows * label.Dim {
		switch {
		case label.Dim > 1:
			values = append(values, float32(goldenID("tokens", i+1, m.Columns[0].Dim)))
		case classes == 0:
			values = append(values, float32(goldenUnit("label", i)))
		default:
			values = append(values, float32(goldenID("label", i, classes)))
		}
	}
	s.specs, s.columns = append(s.specs, label), append(s.columns, data.Column{Values: values})
	return s
}

func (s *goldenSource) Columns() []data.ColumnSpec { return s.specs }
func (s *goldenSource) Rows() int                  { return s.rows }
func (s *goldenSource) Close() error               { return nil }

func (s *goldenSource) Read(rows []int, b *data.Batch) error {
	b.Rows, b.Columns = len(rows), make([]data.Column, len(s.specs))
	for i, spec := range s.specs {
		from, to := &s.columns[i], &b.Columns[i]
		for _, r := range rows {
			lo, hi := int64(r*spec.Dim), int64((r+1)*spec.Dim)
			if spec.Kind == data.RaggedColumn {
				lo, hi = from.Offsets[r], from.Offsets[r+1]
				to.Offsets = append(to.Offsets, int64(len(to.IDs)))
				to.IDs = append(to.IDs, from.IDs[lo:hi]...)
			}
			to.Values = append(to.Values, from.Values[lo:hi]...)
		}
		to.Offsets = append(to.Offsets, int64(len(to.IDs)))
	}
	return nil
}

// Every model has the first ten losses that PyTorch gives it, from the same
// initial values on the same batch: in float64 on ref to 1e-9, in float32 on
// native to 1e-4.
func TestGoldenModels(t *testing.T) {
	text, err := os.ReadFile("../golden/testdata/models.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for i := range g.Models {
		m := &g.Models[i]
		var c model.Config
		if err := json.Unmarshal(m.Model, &c); err != nil {
			t.Fatal(err)
		}
		kinds[c.Kind] = true
		if len(m.Losses) != 10 {
			t.Errorf("%s: golden numbers of %d steps, want 10", m.Name, len(m.Losses))
		}
		for _, c := range []struct {
			backend, precision string
			bound              float64
		}{{"ref", "f64", 1e-9}, {"native", "f64", 1e-9}, {"native", "f32", 1e-4}} {
			t.Run(m.Name+"/"+c.backend+"/"+c.precision, func(t *testing.T) {
				got := goldenLosses(t, g.Rows, m, c.backend, c.precision)
				if len(got) != len(m.Losses) {
					t.Fatalf("%d losses, want %d", len(got), len(m.Losses))
				}
				for step, want := range m.Losses {
					if !(math.Abs(got[step]-want) <= c.bound*want) {
						t.Errorf("step %d: loss %.12g, PyTorch has %.12g", step, got[step], want)
					}
				}
			})
		}
	}
	for _, k := range model.Kinds() {
		if !kinds[k] {
			t.Errorf("no golden numbers for model %s", k)
		}
	}
}

// goldenLosses trains a model from the golden values and returns its losses.
func goldenLosses(t *testing.T, batch int, m *goldenModel, on, precision string) []float64 {
	text := fmt.Sprintf("model: %s\noptimizer: %s\nbatch: %d\nepochs: 99\ndata: {train: {format: generated}}\n", m.Model, m.Optimizer, batch)
	j := parse(t, text, "backend="+on, "precision="+precision, "threads=1")
	classes := j.Model.Classes
	if j.Task() == graph.Binary {
		classes = 2
	}
	src := newGoldenSource(batch, m, classes)
	setup, err := NewSetup(j, src.Columns())
	if err != nil {
		t.Fatal(err)
	}
	state := params.New(setup.Step)
	shapes := map[string][]int{}
	for _, p := range setup.Step.Params {
		shapes[p.Var.Name] = p.Var.Shape
		goldenFill(state[p.Var.Name], p.Var.Name)
	}
	if diff := cmp.Diff(m.Params, shapes); diff != "" {
		t.Fatalf("parameters: %s", diff)
	}
	w := &worker{
		member: &member{cfg: Config{Job: j, Logger: slog.New(slog.DiscardHandler)}, setup: setup, rows: &input.Rows{Train: src}},
		holder: &local{setup: setup, state: state},
	}
	if w.backend, err = backend(j, 1); err != nil {
		t.Fatal(err)
	}
	var losses []float64
	ex, err := w.executor(strategy.StepPlan, src, setup.trainOrder(src), nil, exec.Config{OnStep: func(_ int64, r exec.Result) {
		losses = append(losses, r.Loss/r.Weight)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Close()
	if err := ex.Run(t.Context(), 0, int64(len(m.Losses))); err != nil {
		t.Fatal(err)
	}
	return losses
}

// goldenFill writes the golden values of a parameter.
func goldenFill(p *tensor.Tensor, name string) {
	base := 0.0
	if strings.HasSuffix(name, "gain") {
		base = 1
	}
	for i := range p.Elems() {
		v := base + goldenUnit(name, i)/4
		if p.DType() == tensor.F32 {
			p.F32()[i] = float32(v)
		} else {
			p.F64()[i] = v
		}
	}
}
