package split

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustNew(t *testing.T, r Rule) *Splitter {
	t.Helper()
	s, err := New(r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestParts: every row is of one part exactly, whatever the way, and the parts are as
// large as the rule says.
func TestParts(t *testing.T) {
	const n = 20_000
	for _, rule := range []Rule{
		{By: ByFraction, Validation: []string{"0.1"}, Test: []string{"0.2"}},
		{By: ByFraction, Validation: []string{"0.1"}, Test: []string{"0.2"}, Seed: 9},
		{By: ByTail, Validation: []string{"0.1"}, Test: []string{"0.2"}},
		{By: ByFile, Validation: []string{"day-08*", "/x/day-9"}, Test: []string{"day-0[0-1]"}},
		{By: ByColumn, Column: "c", Validation: []string{"v8"}, Test: []string{"v0", "v1"}},
		{By: ByTime, Column: "c", Validation: []string{"v7"}, Test: []string{"v8"}},
	} {
		count := map[string]int{}
		parts := []string{Train, Validation, Test}
		var all []*Splitter
		for _, p := range parts {
			r := rule
			r.Part = p
			s := mustNew(t, r)
			if s.NeedsTotal() {
				s.SetTotal(n)
			}
			all = append(all, s)
		}
		last := -1
		for row := range n {
			digit := strconv.Itoa(row * 10 / n)
			of := 0
			for i, s := range all {
				meant, err := s.Meant(row, "/data/day-0"+digit, "v"+digit)
				if err != nil {
					t.Fatal(err)
				}
				if !meant {
					continue
				}
				of++
				count[parts[i]]++
				if rule.By == ByTail && i < last {
					t.Fatalf("row %d of the tail is %s", row, parts[i])
				}
				last = i
			}
			if of != 1 {
				t.Fatalf("%+v: row %d is of %d parts", rule, row, of)
			}
		}
		want := map[string]float64{Train: .7, Validation: .1, Test: .2}
		for p, share := range want {
			if got := float64(count[p]) / n; math.Abs(got-share) > 6*math.Sqrt(share*(1-share)/n)+1e-9 {
				t.Errorf("%+v: %s has %.4f of the rows, want %v", rule, p, got, share)
			}
		}
	}
}

// TestSeeds: another seed draws other rows, the same seed the same.
func TestSeeds(t *testing.T) {
	draw := func(seed uint64) string {
		s := mustNew(t, Rule{By: ByFraction, Test: []string{"0.5"}, Seed: seed})
		var b strings.Builder
		for row := range 100 {
			meant, _ := s.Meant(row, "", "")
			b.WriteString(strconv.FormatBool(meant)[:1])
		}
		return b.String()
	}
	if again := draw(1); again != draw(1) || again == draw(2) || again == draw(0) {
		t.Error("seeds do not decide")
	}
}

// TestTime: numbers order as numbers, other texts as texts.
func TestTime(t *testing.T) {
	numbers := Rule{By: ByTime, Column: "t", Validation: []string{"9"}, Test: []string{"100"}}
	dates := Rule{By: ByTime, Column: "t", Validation: []string{"2024-05-01"}, Test: []string{"2024-06-01"}}
	for _, c := range []struct {
		rule  Rule
		value string
		want  string
	}{
		{numbers, "8.5", Train},
		{numbers, "9", Validation},
		{numbers, "99", Validation},
		{numbers, "100", Test},
		{numbers, "1e3", Test},
		{dates, "2024-04-30", Train},
		{dates, "2024-05-01T10:00", Validation},
		{dates, "2024-06-01", Test},
	} {
		got, err := mustNew(t, c.rule).part(0, "", c.value)
		if err != nil || got != c.want {
			t.Errorf("%s is %s, %v, want %s", c.value, got, err, c.want)
		}
	}
	if _, err := mustNew(t, numbers).Meant(0, "", "soon"); err == nil || !strings.Contains(err.Error(), `"soon" is no number`) {
		t.Errorf("a text among numbers: %v", err)
	}
}

// TestRefused: rules that make no sense, and what they should say.
func TestRefused(t *testing.T) {
	half := []string{"0.5"}
	for _, c := range []struct {
		rule Rule
		want string
	}{
		{Rule{By: "fractoin", Test: half}, `did you mean "fraction"`},
		{Rule{By: ByFraction, Test: half, Part: "tst"}, `did you mean "test"`},
		{Rule{By: ByFraction}, "both are missing"},
		{Rule{By: ByFraction, Test: []string{"1.5"}}, "no share"},
		{Rule{By: ByFraction, Test: []string{"nan"}}, "no share"},
		{Rule{By: ByFraction, Test: []string{"0.1", "0.2"}}, "no share"},
		{Rule{By: ByFraction, Test: half, Validation: half}, "leave no rows"},
		{Rule{By: ByFraction, Test: half, Column: "c"}, "need the name of a column"},
		{Rule{By: ByColumn, Test: half}, "need the name of a column"},
		{Rule{By: ByTail, Test: half, Part: Validation}, "validation is missing"},
		{Rule{By: ByTail, Test: half, Seed: 1}, "only by fraction draws"},
		{Rule{By: ByTime, Column: "t", Test: []string{"1", "2"}}, "want the one"},
		{Rule{By: ByTime, Column: "t", Validation: []string{"5"}, Test: []string{"3"}}, "is not before test"},
		{Rule{By: ByTime, Column: "t", Validation: []string{"5"}, Test: []string{"x"}}, "is not before test"},
		{Rule{By: ByFile, Test: []string{"a["}}, "no pattern"},
	} {
		if _, err := New(c.rule); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.rule, err, c.want)
		}
	}
}

// TestNegatives: the sample is as large as it should be, the sum of weights stays that
// of all rows, positive rows are all kept, and other ranks draw the same.
func TestNegatives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := Negatives{Keep: rapid.Float64Range(.05, 1).Draw(t, "keep"), Seed: rapid.Uint64().Draw(t, "seed")}
		const rows = 20_000
		kept, weight := 0, 0.0
		for row := range rows {
			if n.Weight(row, false) != 1 {
				t.Fatal("a positive row was not kept whole")
			}
			w := n.Weight(row, true)
			if w != n.Weight(row, true) {
				t.Fatal("drawn twice, it differs")
			}
			if w > 0 {
				kept++
			}
			weight += float64(w)
		}
		sigma := math.Sqrt(n.Keep * (1 - n.Keep) * rows)
		if math.Abs(float64(kept)-n.Keep*rows) > 6*sigma+1 || math.Abs(weight-rows) > (6*sigma+1)/n.Keep {
			t.Fatalf("%+v: %d of %d kept, weight %v", n, kept, rows, weight)
		}
	})
	if (Negatives{}).Weight(3, true) != 1 {
		t.Error("without a sample a row is left out")
	}
	for _, keep := range []float64{-.1, 1.5, math.NaN()} {
		if (Negatives{Keep: keep}).Check() == nil {
			t.Errorf("keep %v is a probability", keep)
		}
	}
}
