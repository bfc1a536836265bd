package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/plan/check"
)

// localStep is a step of two workers that train copies of their own.
const localStep = `plan step window=2 local=true

values
  0  w       f32  [4]    param
  1  w/m     f32  [4]    slot    of=w
  2  x       f32  [? 4]  act
  3  loss    f32  []     scalar
  4  weight  f32  []     scalar
  5  w.grad  f32  [4]    grad    of=w
  6  total   f32  []     scalar
  7  sum     f32  []     scalar

segments
  0  forward
  1  update   updates=w

groups
  0  0 1
  1  0
  2  1

holdings
  0  w    0..4  owner  rank=0
  1  w/m  0..4  owner  rank=0
  2  w    0..4  copy   rank=1
  3  w/m  0..4  copy   rank=1

rank 0
  0  reader   feed     batch                            -> x
  1  device   compute  forward  seg=0          after=0  w x -> loss weight w.grad
  2  group.1  commit   step     group=1 tag=1  after=1  weight loss w.grad -> total sum
  3  device   compute  update   seg=1          after=2  w w.grad total w/m -> w w/m

rank 1
  0  reader   feed     batch                            -> x
  1  device   compute  forward  seg=0          after=0  w x -> loss weight w.grad
  2  group.2  commit   step     group=2 tag=1  after=1  weight loss w.grad -> total sum
  3  device   compute  update   seg=1          after=2  w w.grad total w/m -> w w/m
`

// meetPlan averages the copies of two workers.
const meetPlan = `plan meet window=1

values
  0  w      f32  [4]  param
  1  w/m    f32  [4]  slot  of=w
  2  w.sum  f32  [4]  act   of=w
  3  m.sum  f32  [4]  act   of=w

groups
  0  0 1

holdings
  0  w    0..4  owner  rank=0
  1  w/m  0..4  owner  rank=0
  2  w    0..4  copy   rank=1
  3  w/m  0..4  copy   rank=1

ranks 0-1
  0  device   add        w.copy  factors=1                w -> w.sum
  1  device   add        m.copy  factors=1                w/m -> m.sum
  2  group.0  allreduce  w       group=0 tag=2  after=0   w.sum -> w.sum
  3  group.0  allreduce  m       group=0 tag=3  after=1   m.sum -> m.sum
  4  device   add        w.mean  factors=0.5    after=2   w.sum -> w
  5  device   add        m.mean  factors=0.5    after=3   m.sum -> w/m
`

// program is a step three times and then a meeting; settling is another text.
func program(t *testing.T, step, end, settle string) *plan.Program {
	t.Helper()
	p := &plan.Program{Plans: map[string]*plan.Plan{}, Cycle: []string{"step", "step", "step"}}
	for name, text := range map[string]string{"step": step, "end": end, "settle": settle} {
		if text == "" {
			continue
		}
		parsed, err := plan.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		p.Plans[name] = parsed
	}
	if end != "" {
		p.Cycle = append(p.Cycle, "end")
	}
	if settle != "" {
		p.Settle = "settle"
	}
	return p
}

// edited replaces texts in a plan; each must be there.
func edited(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the plan has no %q", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// TestCopiesMeet: a program whose ranks train copies of their own is proved only if the
// copies meet in every cycle and are equal where it settles; whatever is forgotten, or
// counts wrongly, is named.
func TestCopiesMeet(t *testing.T) {
	noSum := edited(t, meetPlan, "  2  group.0  allreduce  w       group=0 tag=2  after=0   w.sum -> w.sum\n", "",
		"  3  group.0  allreduce", "  2  group.0  allreduce", "  4  device   add        w.mean  factors=0.5    after=2 ", "  3  device   add        w.mean  factors=1             ",
		"  5  device   add        m.mean  factors=0.5    after=3", "  4  device   add        m.mean  factors=0.5    after=2")
	noSlot := edited(t, meetPlan, "factors=0.5    after=3   m.sum -> w/m", "factors=1      after=3   w/m -> m.sum")
	pull := edited(t, meetPlan, "w.mean  factors=0.5    after=2   w.sum -> w\n", "w.mean  factors=0.9,0.05 after=2 w w.sum -> w\n")
	for _, c := range []struct {
		name              string
		step, end, settle string
		want              []string // none: it holds
	}{
		{"averaged", localStep, meetPlan, meetPlan, nil},
		{"slots are averaged where it settles only", localStep, noSlot, meetPlan, nil},
		{"drawn together", localStep, pull, meetPlan, nil},
		{"reset", localStep, edited(t, noSlot, "add        m.mean  factors=1      after=3   w/m -> m.sum", "add        m.mean  factors=0.1    after=3   -> w/m"), meetPlan, nil},
		{"no averaging", localStep, "", meetPlan, []string{"rank 0: its copy of w has nothing of that of rank 1 after a cycle", "rank 1: its copy of w has nothing of that of rank 0"}},
		{"no settling", localStep, meetPlan, "", []string{`step trains copies of its ranks' own, and no plan "" lets them settle`}},
		{"settling forgets the sum", localStep, meetPlan, noSum, []string{"rank 1: settling within a cycle leaves it another w than rank 0 has"}},
		{"settling forgets a slot", localStep, meetPlan, noSlot, []string{"rank 1: settling within a cycle leaves it another w/m than rank 0 has"}},
		{"the averaging forgets the sum", localStep, noSum, meetPlan, []string{"rank 0: its copy of w has nothing of that of rank 1"}},
		{"not divided", localStep, edited(t, meetPlan, "w.mean  factors=0.5", "w.mean  factors=1  "), meetPlan, []string{"rank 0: the copies that its w is made of count 2 together, want 1"}},
		{"a number is added", localStep, edited(t, meetPlan, "w.mean  factors=0.5  ", "w.mean  factors=0.5,1"), meetPlan, []string{"a number is added to w"}},
		{"settling is only drawn together", localStep, pull, pull, []string{"settling after a cycle leaves it another w than rank 0 has"}},
		{"a plan that does not hold", localStep, edited(t, meetPlan, "after=2   w.sum -> w\n", "          w.sum -> w\n"), meetPlan, []string{`plan "end": rank 0: task 4`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := check.Program(program(t, c.step, c.end, c.settle))
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("found %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(fmt.Sprint(err), want) {
					t.Errorf("found %v, want %q", err, want)
				}
			}
		})
	}
}

// TestFactorsFit: an Add has a factor for each value, and perhaps one more.
func TestFactorsFit(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"factors=0.5    after=2   w.sum -> w\n", "factors=0.5,1,1 after=2 w.sum -> w\n", "adds 1 values with 3 factors"},
		{"factors=0.5    after=2   w.sum -> w\n", "factors=0.5 after=2 w.sum m.sum -> w\n", "adds 2 values with 1 factors"},
		{"factors=0.5    after=2   w.sum -> w\n", "after=2 -> w\n", "adds 0 values with 0 factors"},
		{"factors=0.5    after=2   w.sum -> w\n", "factors=0.5,0.5 after=2 w.sum m.sum -> w w/m\n", "and one value out"},
	} {
		p, err := plan.Parse(edited(t, meetPlan, c.old, c.new))
		if err != nil {
			t.Fatal(err)
		}
		if err := check.Plan(p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.new, err, c.want)
		}
	}
}

// TestProgramTurns: the cycle names plans that there are, and one that feeds.
func TestProgramTurns(t *testing.T) {
	p := program(t, localStep, meetPlan, meetPlan)
	p.Cycle = []string{"step", "end", "step"}
	if err := check.Program(p); err == nil || !strings.Contains(err.Error(), "want one plan that feeds") {
		t.Errorf("a step after the end of a cycle: %v", err)
	}
	p.Cycle = nil
	if err := check.Program(p); err == nil || !strings.Contains(err.Error(), "runs no plan") {
		t.Errorf("no cycle: %v", err)
	}
	p.Cycle = []string{"step", "stop"}
	if err := check.Program(p); err == nil || !strings.Contains(err.Error(), `runs a plan "stop", which it has not`) {
		t.Errorf("a plan that is not there: %v", err)
	}
}

// TestLocalGradients: in a local plan an update is from the rank's own batches, all of
// them, and no other's.
func TestLocalGradients(t *testing.T) {
	summed := edited(t, localStep, "  3  device   compute  update   seg=1          after=2",
		"  3  group.0  allreduce  w  group=0 tag=2 after=1,2 w.grad -> w.grad\n  4  device   compute  update   seg=1          after=2,3")
	for _, c := range []struct{ name, text, want string }{
		{"own", localStep, ""},
		{"summed over all", summed, "has met the batch of rank 1, in a plan in which every rank trains a copy by itself"},
		{
			"weight of all", edited(t, localStep, "group.1  commit   step     group=1", "group.0  commit   step     group=0", "group.2  commit   step     group=2", "group.0  commit   step     group=0"),
			"total has met the batch of rank 1",
		},
		{"not local", edited(t, localStep, " local=true", ""), "lacks the batch of rank 1"},
		{"no update", edited(t, localStep, "  3  device   compute  update   seg=1          after=2  w w.grad total w/m -> w w/m\n", ""), "holds w but never updates it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := plan.Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if err = check.Plan(p); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("found %v, want %q", err, c.want)
			}
		})
	}
}
