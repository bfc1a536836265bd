package lbfgs

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// example is a row: y is -1 or +1.
type example struct {
	y   float64
	ids []int32
	v   []float64
}

// logistic is the sum over rows of log(1 + exp(-y w.x)).
func logistic(examples []example, n int) problem {
	return problem{n: n, rows: len(examples), eval: func(w, g []float64, lo, hi int) (loss, weight float64) {
		for _, e := range examples[lo:hi] {
			margin := 0.
			for i, id := range e.ids {
				margin += w[id] * e.v[i]
			}
			margin *= e.y
			loss += max(-margin, 0) + math.Log1p(math.Exp(-math.Abs(margin)))
			slope := -e.y / (1 + math.Exp(margin))
			for i, id := range e.ids {
				g[id] += slope * e.v[i]
			}
		}
		return loss, float64(hi - lo)
	}}
}

// examples reads libsvm text, and that of Vowpal Wabbit with numbers for names, of
// the shared data; it skips the test without them.
func examples(t *testing.T, name string) []example {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "data", "libsvm", name)
	f, err := os.Open(path)
	if err != nil {
		t.Skipf("real data are absent: %v", err)
	}
	defer f.Close()
	var rows []example
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		words := strings.Fields(strings.Replace(lines.Text(), "|f", "", 1))
		e := example{y: number(t, words[0])}
		for _, word := range words[1:] {
			id, value, ok := strings.Cut(word, ":")
			n, err := strconv.Atoi(id)
			if !ok || err != nil {
				t.Fatalf("%s:%d: %q is no feature", name, len(rows)+1, word)
			}
			e.ids, e.v = append(e.ids, int32(n)), append(e.v, number(t, value))
		}
		rows = append(rows, e)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

func number(t *testing.T, s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// fit finds the minimum of mean log loss + w.w/(2n) from w = 0.
func fit(t *testing.T, rows []example, n, servers, workers int, cfg Config) (Result, *cluster) {
	t.Helper()
	cfg.L2, cfg.Portions = 1/float64(len(rows)), 16
	c := newCluster(t, logistic(rows, n), &cfg, make([]float64, n), servers, workers)
	end := c.run(solver(t, cfg))
	if end.Kind != ActionDone {
		t.Fatalf("%d servers, %d workers: %v", servers, workers, end.Err)
	}
	return end.Result, c
}

// TestRealData: the optimum that scikit-learn found on a9a to 1e-8, on 1 and 4
// workers of different speeds and 1 and 3 servers, and that of Vowpal Wabbit on
// rcv1_small within 1 %; each command and its answer have the same size whether
// there are 123 parameters or 47,236, and however many servers and workers.
func TestRealData(t *testing.T) {
	a9a, rcv1 := examples(t, "a9a"), examples(t, "rcv1_small.vw")
	if len(a9a) != 32561 || len(rcv1) != 1000 {
		t.Fatalf("%d and %d rows, want 32561 and 1000", len(a9a), len(rcv1))
	}
	forms := map[string]int{}
	check := func(name string, r Result, c *cluster) {
		t.Helper()
		t.Logf("%s on %d servers, %d workers: %+v, %d bytes a server, %+v", name, len(c.servers), len(c.slow), r, c.traffic.total, c.book.Counts())
		for form, bytes := range c.traffic.commands {
			if was, ok := forms[form]; ok && was != bytes {
				t.Errorf("%s: %s has %d bytes, elsewhere %d", name, form, bytes, was)
			}
			forms[form] = bytes
		}
		counts := c.book.Counts()
		if !counts.Balanced() || counts.Counted != int64(16*r.Evaluations) {
			t.Errorf("%s: %d evaluations of 16 portions, and counts are %+v", name, r.Evaluations, counts)
		}
		if len(c.slow) > 1 && (counts.Copies == 0 || c.book.Of(0).Counted <= c.book.Of(3).Counted) {
			t.Errorf("%s: the fast worker counts for %d portions, the slow one for %d; %d copies",
				name, c.book.Of(0).Counted, c.book.Of(3).Counted, counts.Copies)
		}
	}
	for _, servers := range []int{1, 3} {
		for _, workers := range []int{1, 4} {
			r, c := fit(t, a9a, 124, servers, workers, Config{GradTolerance: 1e-6})
			check("a9a", r, c)
			if math.Abs(r.Objective-.3233795825) > 1e-8 {
				t.Errorf("a9a on %d servers, %d workers: objective %.12f, want 0.3233795825", servers, workers, r.Objective)
			}
		}
	}
	r, c := fit(t, rcv1, 47237, 3, 4, Config{GradTolerance: 1e-6, Memory: 10})
	check("rcv1_small", r, c)
	if math.Abs(r.Objective-.47691) > .01*.47691 {
		t.Errorf("rcv1_small: objective %g, want .47691 within 1 %%", r.Objective)
	}
}
