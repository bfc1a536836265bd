package ps

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// TestScripts runs the scripts in testdata against the machine. Commands:
//
//	new workers=(0,1) [store=0 stores=1] [patience=30s]   a state a line: w 4 | emb 10x2
//	offer|push w=0 step=0 seq=1 [verdict=0:8]             w: 1 2 3 4 | emb: 3=1,1 7=2,2
//	pull w=0 step=0 [verdict=0:8]                         w | emb: 3 7
//	flush|snapshot|bye w=0 [step=0] [verdict=0:8]
//	lose w=0
//	tick 30s                                              the time goes on
//	show                                                  version, counts, state
//
// All states are f64 with rule sgd of rate 1 that start from zero.
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt") // not what rapid and fuzzing keep below
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			r := &script{now: time.Unix(0, 0)}
			datadriven.RunTest(t, path, r.run)
		})
	}
}

type script struct {
	s   *Shard
	now time.Time
}

func (r *script) run(t *testing.T, d *datadriven.TestData) string {
	kinds := map[string]EventKind{
		"offer": EventOffer, "push": EventPush, "pull": EventPull, "flush": EventFlush,
		"snapshot": EventSnapshot, "bye": EventBye, "lose": EventLost,
	}
	switch d.Cmd {
	case "new":
		return r.create(t, d)
	case "tick":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		r.now = r.now.Add(by)
		return r.print(r.s.Step(r.now, Event{Kind: EventTick}))
	case "show":
		return r.show()
	}
	ev := Event{Kind: kinds[d.Cmd]}
	if ev.Kind == 0 {
		d.Fatalf(t, "unknown command")
	}
	var seq, step int
	var verdict string
	d.ScanArgs(t, "w", &ev.From)
	d.MaybeScanArgs(t, "seq", &seq)
	d.MaybeScanArgs(t, "step", &step)
	ev.Seq, ev.Step = uint64(seq), int64(step)
	if d.MaybeScanArgs(t, "verdict", &verdict) {
		ev.Verdict.Given = true
		if _, err := fmt.Sscanf(verdict, "%d:%g", &ev.Verdict.Step, &ev.Verdict.Weight); err != nil {
			d.Fatalf(t, "verdict %s: %v", verdict, err)
		}
	}
	for line := range strings.Lines(d.Input) {
		ev.Blocks = append(ev.Blocks, r.block(t, d, strings.TrimSpace(line)))
	}
	return r.print(r.s.Step(r.now, ev))
}

func (r *script) create(t *testing.T, d *datadriven.TestData) string {
	var workers []int
	l := Layout{Stores: 1}
	d.ScanArgs(t, "workers", &workers)
	d.MaybeScanArgs(t, "store", &l.Store)
	d.MaybeScanArgs(t, "stores", &l.Stores)
	for line := range strings.Lines(d.Input) {
		name, size, _ := strings.Cut(strings.TrimSpace(line), " ")
		st := State{Index: len(l.States), Name: name, DType: tensor.F64, Rule: optim.Rule{Kind: optim.SGD, LR: 1}, Init: graph.Init{Kind: graph.Zeros}}
		for dim := range strings.SplitSeq(size, "x") {
			st.Shape = append(st.Shape, number(t, d, dim))
		}
		if st.Table = len(st.Shape) == 2; !st.Table {
			st.Hi = st.Shape[0]
		}
		l.States = append(l.States, st)
	}
	s, err := NewShard(l, workers)
	if err != nil {
		return err.Error()
	}
	var patience string
	if d.MaybeScanArgs(t, "patience", &patience) {
		if s.Patience, err = time.ParseDuration(patience); err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	r.s = s
	return ""
}

func number(t *testing.T, d *datadriven.TestData, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return n
}

func floats(t *testing.T, d *datadriven.TestData, fields []string) []float64 {
	var all []float64
	for _, f := range fields {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		all = append(all, v)
	}
	return all
}

// block reads "w: 1 2", "emb: 3=1,1 7=2,2", "w" or "emb: 3 7".
func (r *script) block(t *testing.T, d *datadriven.TestData, line string) Block {
	name, rest, _ := strings.Cut(line, ":")
	b := Block{State: 99}
	for _, st := range r.s.layout.States {
		if st.Name != name {
			continue
		}
		b = Block{State: st.Index, Lo: st.Lo, Hi: st.Hi}
		if !st.Table {
			v := floats(t, d, strings.Fields(rest))
			b.Data = tensor.From(v, len(v))
			return b
		}
		keys, rows := []int64{}, []float64{}
		for f := range strings.FieldsSeq(rest) {
			key, row, _ := strings.Cut(f, "=")
			keys = append(keys, int64(number(t, d, key)))
			if row != "" {
				rows = append(rows, floats(t, d, strings.Split(row, ","))...)
			}
		}
		b.Keys, b.Data = tensor.From(keys, len(keys)), tensor.From(rows, len(rows))
	}
	return b
}

func (r *script) print(actions []Action, why string) string {
	var b strings.Builder
	for _, a := range actions {
		switch a.Kind {
		case ActionReply:
			fmt.Fprintf(&b, "-> %d %v, version %d%s\n", a.To, a.Status, a.Version, r.values(a))
		case ActionRefuse:
			fmt.Fprintf(&b, "-> %d refused: %v\n", a.To, a.Err)
		case ActionApplied:
			fmt.Fprintf(&b, "applied %d\n", a.Step)
		case ActionSkipped:
			fmt.Fprintf(&b, "skipped %d\n", a.Step)
		case ActionSnapshot:
			fmt.Fprintf(&b, "-> %d snapshot of version %d\n", a.To, a.Version)
		}
	}
	fmt.Fprintf(&b, "because: %s\n", why)
	return b.String()
}

func (r *script) values(a Action) string {
	var b strings.Builder
	for _, x := range a.Blocks {
		st := &r.s.layout.States[r.s.layout.find(x.State)]
		if a.Status == Continue {
			fmt.Fprintf(&b, "\n   %s room %v", st.Name, x.Data.Shape())
			continue
		}
		fmt.Fprintf(&b, "\n   %s %v", st.Name, x.Data.F64())
	}
	return b.String()
}

func (r *script) show() string {
	var b strings.Builder
	st := r.s.Stats()
	fmt.Fprintf(&b, "version %d, parked %d, pulls %d, refused %d\n", st.Version, st.Parked, st.Pulls, st.Refused)
	fmt.Fprintf(&b, "pushed %d = applied %d + late %d + expired %d + skipped %d + pending %d (%v), repeated %d\n",
		st.Pushed, st.Applied, st.Late, st.Expired, st.Skipped, st.Pending, st.Balanced(), st.Duplicates)
	for _, w := range st.Workers {
		fmt.Fprintf(&b, "  rank %d: pushed %d, pending %d, last step %d\n", w.Rank, w.Pushed, w.Pending, w.LastStep)
	}
	for _, p := range r.s.Export() {
		if p.Keys != nil {
			fmt.Fprintf(&b, "%s %v: %v\n", p.Name, p.Keys, p.Data.F64())
			continue
		}
		fmt.Fprintf(&b, "%s [%d, %d): %v\n", p.Name, p.Lo, p.Hi, p.Data.F64())
	}
	return b.String()
}
