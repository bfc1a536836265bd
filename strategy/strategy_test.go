package strategy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/plan/check"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
)

// steps are small instances of every model, with rules of zero to two slots.
func steps(t testing.TB) map[string]*graph.Step {
	t.Helper()
	dense := []model.Column{{Name: "x", Dim: 6}}
	ragged := []model.Column{{Name: "ids", Ragged: true, Dim: 50}}
	mixed := []model.Column{{Name: "x", Dim: 3}, {Name: "user", Ragged: true, Dim: 40, PerRow: 2}, {Name: "item", Ragged: true, Dim: 30, PerRow: 1}}
	sgd, momentum := optim.Rule{Kind: optim.SGD, LR: .1}, optim.Rule{Kind: optim.Momentum, LR: .1}
	adam := optim.Rule{Kind: optim.Adam, LR: .1}
	all := make(map[string]*graph.Step)
	for _, m := range []struct {
		name   string
		config model.Config
		rule   optim.Rule
	}{
		{"logistic", model.Config{Kind: "logistic", Inputs: dense}, sgd},
		{"sparse", model.Config{Kind: "logistic", Inputs: ragged, Table: true}, adam},
		{"softmax", model.Config{Kind: "softmax", Inputs: dense, Classes: 3}, momentum},
		{"linear", model.Config{Kind: "linear", Inputs: mixed, Table: true}, sgd},
		{"mlp", model.Config{Kind: "mlp", Inputs: dense, Hidden: []int{5, 4}, Classes: 3}, adam},
		{"ctr", model.Config{Kind: "ctr", Inputs: mixed, Hidden: []int{4}, Dim: 2}, adam},
	} {
		m.config.Float = tensor.F32
		g, mod, err := model.Build(m.config)
		if err != nil {
			t.Fatalf("%s: %v", m.name, err)
		}
		step, err := graph.Train(g, mod, m.rule)
		if err != nil {
			t.Fatalf("%s: %v", m.name, err)
		}
		all[m.name] = step
	}
	all["frozen"] = frozen(t)
	return all
}

// frozen has a variable that is read but not trained, and a table shared by two
// gathers whose name would collide with a value of the plan.
func frozen(t testing.TB) *graph.Step {
	g := graph.New(tensor.F64)
	x, y := g.Ragged("x"), g.Input("label", 0)
	emb := g.GatherRows(g.Table("emb", graph.Init{}, 20, 2), x.Keys())
	wide := g.GatherRows(g.Table("wide", graph.Init{}, 20, 1), x.Keys())
	scale := g.Frozen("emb.grad.all", graph.Init{Kind: graph.Normal, Scale: 1}, 2, 1)
	z := g.MatMul(g.Bag(emb, x.Pos(), x.Offsets(), x.Weights()), scale)
	z = g.Reshape(g.Add(z, g.Bag(wide, x.Pos(), x.Offsets(), x.Weights())), tensor.Dynamic)
	step, err := graph.Train(g, graph.Model{Task: graph.Binary, Loss: g.LogisticLoss(z, y), Weight: g.Count(y), Predict: z, Label: y}, optim.Rule{Kind: optim.Adagrad, LR: 1})
	if err != nil {
		t.Fatal(err)
	}
	return step
}

func onebit() compress.Spec {
	return compress.Spec{Kind: compress.KindOneBit, Block: 512, Feedback: true}
}

func clusters(kind string) []strategy.Cluster {
	var all []strategy.Cluster
	switch kind {
	case "serial":
		return []strategy.Cluster{{Workers: 1}, {Workers: 1, Micro: 3}, {Workers: 1, Slices: 12}, {Workers: 1, Slices: 1}}
	case "allreduce":
		for w := range 8 {
			all = append(all, strategy.Cluster{Workers: w + 1})
		}
		for w := range 6 {
			all = append(all, strategy.Cluster{Workers: w + 1, Bucket: 100, Slices: w + 3})
		}
		for w := range 4 {
			all = append(all, strategy.Cluster{Workers: w + 1, Bucket: 100, Micro: w}, strategy.Cluster{Workers: w + 1, Bucket: 1})
			all = append(all, strategy.Cluster{Workers: w + 1, Bucket: 100, Compression: onebit(), CompressFrom: 40})
		}
	case "zero":
		for w := range 5 {
			for stage := range 3 {
				all = append(all, strategy.Cluster{Workers: w + 1, Stage: stage + 1}, strategy.Cluster{Workers: w + 1, Stage: stage + 1, Bucket: 100, Micro: 1 + w%3})
			}
		}
	case "ps":
		for w := range 8 {
			for s := range 4 {
				all = append(all, strategy.Cluster{Workers: w + 1, Servers: s + 1})
			}
		}
	}
	return all
}

// TestEveryPlanIsProved makes every plan of every strategy, model and cluster
// size there is, and has it proved and read back from its text.
func TestEveryPlanIsProved(t *testing.T) {
	models := steps(t)
	for _, kind := range strategy.Names() {
		build, err := strategy.ByName(kind)
		if err != nil {
			t.Fatal(err)
		}
		for name, step := range models {
			for _, c := range clusters(kind) {
				t.Run(fmt.Sprintf("%s/%s/%+v", kind, name, c), func(t *testing.T) {
					program, err := build(step, c)
					if err != nil {
						t.Fatal(err)
					}
					for _, p := range program.Plans {
						if err := check.Plan(p); err != nil {
							t.Errorf("%s: %v\n%s", p.Name, err, plan.Format(p))
						}
						back, err := plan.Parse(plan.Format(p))
						if err != nil {
							t.Fatal(err)
						}
						if plan.Format(back) != plan.Format(p) {
							t.Errorf("%s does not read back as itself", p.Name)
						}
					}
					again, err := build(step, c)
					if err != nil || plan.ProgramDigest(again) != plan.ProgramDigest(program) {
						t.Errorf("the same arguments gave another program (%v)", err)
					}
				})
			}
		}
	}
}

// TestPlansOfAProgramAgreeOnStates: servers keep parameters under their number
// in the plan, so it must be one number in all plans.
func TestPlansOfAProgramAgreeOnStates(t *testing.T) {
	for name, step := range steps(t) {
		program, err := strategy.PS(step, strategy.Cluster{Workers: 2, Servers: 2})
		if err != nil {
			t.Fatal(err)
		}
		lasting := func(p *plan.Plan) []plan.Value {
			return slices.DeleteFunc(slices.Clone(p.Values), func(v plan.Value) bool { return v.Class != plan.Param && v.Class != plan.Slot })
		}
		a, b := program.Plans["step"], program.Plans["eval"]
		want := lasting(a)
		if d := cmp.Diff(want, lasting(b)); d != "" {
			t.Errorf("%s: states differ (-step +eval):\n%s", name, d)
		}
		if d := cmp.Diff(want, b.Values[:len(want)]); d != "" {
			t.Errorf("%s: states are not the first values:\n%s", name, d)
		}
		if d := cmp.Diff(a.Holdings, b.Holdings); d != "" {
			t.Errorf("%s: holdings differ (-step +eval):\n%s", name, d)
		}
	}
}

// TestPlansShareNoTags: a late message of one plan must not pass for the other's.
func TestPlansShareNoTags(t *testing.T) {
	program, err := strategy.PS(steps(t)["mlp"], strategy.Cluster{Workers: 1, Servers: 2})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[uint32]string)
	for name, p := range program.Plans {
		for _, task := range p.Ranks[0] {
			if other := seen[task.Tag]; task.Tag != 0 && other != "" {
				t.Errorf("tag %d is used in %s and %s", task.Tag, other, name)
			}
			seen[task.Tag] = name
		}
	}
}

// TestInputsAreWhatIsFed: who fills a Feed binds its values by this order.
func TestInputsAreWhatIsFed(t *testing.T) {
	for name, step := range steps(t) {
		for _, kind := range strategy.Names() {
			build, _ := strategy.ByName(kind)
			if len(clusters(kind)) == 0 { // of copies: those of tables are refused; the rest is fed as in serial
				continue
			}
			program, err := build(step, clusters(kind)[0])
			if err != nil {
				t.Fatal(err)
			}
			for planName, p := range program.Plans {
				var want, got []string
				label := false
				for _, n := range strategy.Inputs(step, planName) {
					want = append(want, n.Name)
					label = label || n == step.Model.Label
				}
				for _, r := range p.Ranks[0][0].Out {
					got = append(got, p.Values[r.Value].Name)
				}
				if d := cmp.Diff(want, got); d != "" || !label {
					t.Errorf("%s/%s/%s: label fed: %v; (-Inputs +Feed):\n%s", name, kind, planName, label, d)
				}
			}
		}
	}
}

// TestStoresShareDenseParameters: ranges differ by one element at most.
func TestStoresShareDenseParameters(t *testing.T) {
	program, err := strategy.PS(steps(t)["mlp"], strategy.Cluster{Workers: 1, Servers: 3})
	if err != nil {
		t.Fatal(err)
	}
	p := program.Plans["step"]
	size := make([]int, 3)
	for _, h := range p.Holdings {
		if p.Values[h.State].Class == plan.Param {
			size[h.Store] += h.Hi - h.Lo
		}
	}
	total := 6*5 + 5 + 5*4 + 4 + 4*3 + 3
	if size[0]+size[1]+size[2] != total || slices.Max(size)-slices.Min(size) > 1 {
		t.Errorf("stores hold %v elements, want %d in equal parts", size, total)
	}
}

func TestWrongClusters(t *testing.T) {
	step := steps(t)["logistic"]
	for _, c := range []struct {
		kind    string
		cluster strategy.Cluster
		want    string
	}{
		{"serial", strategy.Cluster{Workers: 2}, "want one worker"},
		{"serial", strategy.Cluster{Workers: 1, Servers: 1}, "no servers"},
		{"allreduce", strategy.Cluster{}, "at least one worker"},
		{"allreduce", strategy.Cluster{Workers: 2, Servers: 1}, "no servers"},
		{"allreduce", strategy.Cluster{Workers: 2, Bucket: -1}, "want 1 or more"},
		{"zero", strategy.Cluster{}, "at least one worker"},
		{"zero", strategy.Cluster{Workers: 2, Servers: 1}, "no servers"},
		{"zero", strategy.Cluster{Workers: 2, Bucket: -1}, "want 1 or more"},
		{"zero", strategy.Cluster{Workers: 2, Stage: 4}, "want 1, 2 or 3"},
		{"zero", strategy.Cluster{Workers: 2, Hosts: [][]int{{1}, {0}}}, "in order"},
		{"ps", strategy.Cluster{Workers: 2}, "at least one of each"},
		{"ps of tables", strategy.Cluster{Workers: 2, Servers: 1, Micro: 2}, "w is a table, whose rows are pulled for the whole batch at once"},
	} {
		kind, tables := strings.CutSuffix(c.kind, " of tables")
		build, err := strategy.ByName(kind)
		if err != nil {
			t.Fatal(err)
		}
		step := step
		if tables {
			step = steps(t)["sparse"]
		}
		if _, err := build(step, c.cluster); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s on %+v: %v, want %q", c.kind, c.cluster, err, c.want)
		}
	}
}

// Servers refuse rules that need more than a range of a parameter, and say which
// parameter and what to set; the others take them.
func TestWholeNorms(t *testing.T) {
	for _, rule := range []optim.Rule{{Kind: optim.LAMB, LR: .1}, {Kind: optim.SGD, LR: .1, ClipNorm: 1}} {
		step := frozen(t)
		for i := range step.Params {
			step.Params[i].Rule = rule
		}
		_, err := strategy.PS(step, strategy.Cluster{Workers: 2, Servers: 1})
		if err == nil || !strings.Contains(err.Error(), "strategy ps: emb") && !strings.Contains(err.Error(), "strategy ps: wide") ||
			!strings.Contains(err.Error(), "strategy without servers") {
			t.Errorf("%s: got %v", rule.Kind, err)
		}
		if _, err := strategy.AllReduce(step, strategy.Cluster{Workers: 2}); err != nil {
			t.Errorf("%s: %v", rule.Kind, err)
		}
	}
}

// Shards refuse a rule that needs the norm of a whole parameter, but not one that clips
// by the norm of all, which shards add up.
func TestNormsOfShards(t *testing.T) {
	step := steps(t)["mlp"]
	for kind, want := range map[optim.Kind]string{optim.LAMB: "set optimizer.kind adamw", optim.SGD: ""} {
		for i := range step.Params {
			step.Params[i].Rule = optim.Rule{Kind: kind, LR: .1, ClipNorm: 1}
		}
		_, err := strategy.Zero(step, strategy.Cluster{Workers: 2})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// What adds up neither slices nor 16-bit gradients says so.
func TestMixedAndSlicesAreRefused(t *testing.T) {
	half, full := halves(t), steps(t)["softmax"]
	for _, kind := range []string{"zero", "localsgd", "sma"} {
		build, err := strategy.ByName(kind)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := build(half, strategy.Cluster{Workers: 2}); err == nil {
			t.Errorf("%s takes a graph of f16", kind)
		}
		if _, err := build(full, strategy.Cluster{Workers: 2}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := build(full, strategy.Cluster{Workers: 2, Slices: 12}); err == nil {
			t.Errorf("%s takes slices", kind)
		}
	}
}

func TestByNameSpelling(t *testing.T) {
	for given, want := range map[string]string{"alreduce": "allreduce", "PS": "ps", "seral": "serial", "pss": "ps", "zeor": "zero"} {
		if _, err := strategy.ByName(given); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("did you mean %q", want)) {
			t.Errorf("ByName(%q): %v, want nearest %q", given, err, want)
		}
	}
}

// halves is of mixed precision, with a loss scale: dense parameters and a table.
func halves(t testing.TB) *graph.Step {
	c := model.Config{Kind: "ctr", Hidden: []int{4}, Dim: 2, Float: tensor.F16, Inputs: []model.Column{{Name: "x", Dim: 3}, {Name: "item", Ragged: true, Dim: 30, PerRow: 1}}}
	g, m, err := model.Build(c)
	if err != nil {
		t.Fatal(err)
	}
	step, err := graph.Train(g, m, optim.Rule{Kind: optim.Adam, LR: .1})
	if err != nil {
		t.Fatal(err)
	}
	return step
}

// Plans of mixed precision are proved, with and without micro-batches: the loss scale is
// a state that the forward segments and the commit read and a segment changes after it.
// Dense gradients are of 16 bits where they are sent, and f32 where micro-batches are
// added up. Servers refuse them.
func TestMixedPlansAreProved(t *testing.T) {
	step := halves(t)
	for _, kind := range []string{"serial", "allreduce"} {
		build, err := strategy.ByName(kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range clusters(kind) {
			program, err := build(step, c)
			if c.Slices > 0 {
				if err == nil || !strings.Contains(err.Error(), "slices add up in f32 or f64") {
					t.Errorf("%s %+v: %v", kind, c, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for name, p := range program.Plans {
				if err := check.Plan(p); err != nil {
					t.Errorf("%s %s %+v: %v", kind, name, c, err)
				}
			}
			for _, v := range program.Plans[strategy.StepPlan].Values {
				want := tensor.F16
				if v.State >= 0 && len(v.Shape) == 2 && !v.Shape.Static() || strings.HasSuffix(v.Name, ".wide") {
					want = tensor.F32 // of the table
				}
				if v.Class == plan.Grad && v.DType != want {
					t.Errorf("%s %+v: gradient %s %v is %v, want %v", kind, c, v.Name, v.Shape, v.DType, want)
				}
				if (v.Class == plan.Param || v.Class == plan.Slot) && v.DType != tensor.F32 {
					t.Errorf("%s: state %s is %v", kind, v.Name, v.DType)
				}
			}
		}
	}
	if _, err := strategy.PS(step, strategy.Cluster{Workers: 1, Servers: 1}); err == nil || !strings.Contains(err.Error(), "f16") {
		t.Errorf("ps: %v", err)
	}
}
