package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/trace"
)

func sample() []trace.Span {
	return []trace.Span{
		{Rank: 1, Step: 4, Task: 0, Kind: "feed", Lane: "reader", Name: "batch", Category: trace.Input, Start: 1e18 + 1001, End: 1e18 + 2002},
		{Rank: 0, Step: 4, Task: 2, Kind: "collective", Lane: "group 0", Name: "sum w", Category: trace.Communication, Start: 1e18 + 500, End: 1e18 + 1500, Bytes: 96},
		{Rank: 0, Step: 4, Task: 1, Kind: "compute", Lane: "device 0", Name: "forward", Category: trace.Compute, Start: 1e18, End: 1e18 + 400},
		{Rank: 0, Step: 4, Task: 3, Kind: "compute", Lane: "device 0", Name: "update w", Category: trace.Update, Start: 1e18 + 1600, End: 1e18 + 1700},
		{Rank: 0, Step: 4, Task: -1, Lane: "device 0", Name: "wait", Category: trace.Wait, Start: 1e18 + 400, End: 1e18 + 1600},
	}
}

// The ring keeps the last spans in order and counts the others; a model of a
// plain slice is the judge.
func TestRecorderKeepsTheLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 9).Draw(t, "limit")
		n := rapid.IntRange(0, 40).Draw(t, "spans")
		r := trace.NewRecorder(limit)
		var all []trace.Span
		for i := range n {
			s := trace.Span{Step: int64(i)}
			r.Record(&s)
			all = append(all, s)
		}
		lost := max(0, n-limit)
		if r.Dropped() != int64(lost) || r.Len() != n-lost {
			t.Fatalf("%d spans in %d: dropped %d, held %d", n, limit, r.Dropped(), r.Len())
		}
		if d := cmp.Diff(append([]trace.Span{}, all[lost:]...), r.Spans()); d != "" {
			t.Fatal(d)
		}
		r.Reset()
		if r.Len() != 0 || r.Dropped() != 0 {
			t.Fatal("Reset left something")
		}
	})
}

func TestRecordAllocatesNothing(t *testing.T) {
	r := trace.NewRecorder(8)
	s := sample()[0]
	if n := testing.AllocsPerRun(100, func() { r.Record(&s) }); n != 0 {
		t.Fatalf("%v allocations a span", n)
	}
}

func TestSpansSurviveAFile(t *testing.T) {
	var b bytes.Buffer
	if err := trace.WriteSpans(&b, sample()); err != nil {
		t.Fatal(err)
	}
	got, err := trace.ReadSpans(&b, 5)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sample(), got); d != "" {
		t.Fatal(d)
	}
}

func TestReadSpansRefuses(t *testing.T) {
	good := `{"r":0,"s":1,"t":2,"c":"compute","b":1,"e":2}` + "\n"
	for _, c := range []struct{ name, in, want string }{
		{"cut line", good + `{"r":0,"s"`, "line 2"},
		{"unknown category", `{"c":"sleep","b":1,"e":2}`, "sleep"},
		{"backwards", `{"c":"wait","b":3,"e":2}`, "before it starts"},
		{"long line", good + strings.Repeat("x", 1<<17), "line 2"},
		{"too many", good + good + good, "more than 2"},
	} {
		got, err := trace.ReadSpans(strings.NewReader(c.in), 2)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
		if c.name == "too many" && (!errors.Is(err, trace.ErrLimit) || len(got) != 2) {
			t.Errorf("limit: %v with %d spans", err, len(got))
		}
	}
}

func TestMergeMovesClocks(t *testing.T) {
	a := []trace.Span{{Rank: 0, Start: 100, End: 110}, {Rank: 0, Task: 1, Start: 120, End: 130}}
	b := []trace.Span{{Rank: 1, Start: 5, End: 9}}
	got := trace.Merge(trace.Part{Spans: a}, trace.Part{Spans: b, Offset: 110 * time.Nanosecond})
	want := []trace.Span{a[0], {Rank: 1, Start: 115, End: 119}, a[1]}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
	if b[0].Start != 5 {
		t.Fatal("Merge changed its input")
	}
}

func TestSumByCategory(t *testing.T) {
	want := []trace.RankBreakdown{
		{Rank: 0, Breakdown: trace.Breakdown{Compute: 400, Communication: 1000, Wait: 1230, WaitInput: 30, Update: 100}},
		{Rank: 1, Breakdown: trace.Breakdown{Input: 1001}},
	}
	spans := append(sample(), trace.Span{Category: trace.Wait, Name: trace.WaitInputName, Start: 1e18, End: 1e18 + 30})
	if d := cmp.Diff(want, trace.Sum(spans)); d != "" {
		t.Fatal(d)
	}
}

func TestCategoriesRoundTrip(t *testing.T) {
	for c := trace.Other; c <= trace.Adding; c++ {
		got, err := trace.ParseCategory(c.String())
		if err != nil || got != c {
			t.Errorf("%v: %v, %v", c, got, err)
		}
	}
	if _, err := trace.ParseCategory("sleep"); err == nil {
		t.Error("unknown category accepted")
	}
}

// The file is written out whole: lanes numbered by name, metadata first, and
// nanoseconds that survive an epoch of 1970. GANGLINE_REWRITE=1 writes it anew.
func TestChromeGolden(t *testing.T) {
	var b bytes.Buffer
	if err := trace.WriteChrome(&b, sample()); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b.Bytes()) {
		t.Fatal("not JSON")
	}
	if os.Getenv("GANGLINE_REWRITE") != "" {
		if err := os.WriteFile("testdata/chrome.json", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/chrome.json")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Fatal(d)
	}
}

func TestChromeEmpty(t *testing.T) {
	var b bytes.Buffer
	if err := trace.WriteChrome(&b, nil); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b.Bytes()) {
		t.Fatalf("not JSON: %s", b.String())
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteErrorsAreReported(t *testing.T) {
	if err := trace.WriteChrome(failing{}, sample()); err == nil {
		t.Error("WriteChrome hid the error")
	}
	if err := trace.WriteSpans(failing{}, sample()); err == nil {
		t.Error("WriteSpans hid the error")
	}
}
