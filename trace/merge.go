package trace

import (
	"cmp"
	"slices"
	"time"
)

// Part is the spans of one rank and the distance of its clock: Offset is added
// to every time, so that equal times of different ranks mean the same moment.
type Part struct {
	Spans  []Span
	Offset time.Duration
}

// Merge returns the spans of all parts on one clock, by start, then rank, then
// task. It costs a sort.
func Merge(parts ...Part) []Span {
	n := 0
	for _, p := range parts {
		n += len(p.Spans)
	}
	out := make([]Span, 0, n)
	for _, p := range parts {
		for _, s := range p.Spans {
			s.Start += int64(p.Offset)
			s.End += int64(p.Offset)
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Task, b.Task))
	})
	return out
}

// WaitInputName is the name of spans of Wait that a Feed ended.
const WaitInputName = "wait for input"

// Breakdown is where the time of one rank went. The parts overlap, since lanes
// run at the same time: Compute, Update and Wait fill the device's time,
// Communication and Input may hide behind them.
type Breakdown struct {
	Compute       time.Duration `json:"compute"`
	Communication time.Duration `json:"communication"`
	Wait          time.Duration `json:"wait"`
	WaitInput     time.Duration `json:"wait_input"` // the part of Wait that a Feed ended
	Input         time.Duration `json:"input"`
	Update        time.Duration `json:"update"`
	Adding        time.Duration `json:"adding"`
}

// Add counts d under category c; Other is not counted.
func (b *Breakdown) Add(c Category, d time.Duration) {
	switch c {
	case Compute:
		b.Compute += d
	case Communication:
		b.Communication += d
	case Wait:
		b.Wait += d
	case Input:
		b.Input += d
	case Update:
		b.Update += d
	case Adding:
		b.Adding += d
	case Other, categories:
	}
}

// RankBreakdown is the breakdown of one rank.
type RankBreakdown struct {
	Rank int `json:"rank"`
	Breakdown
}

// Sum adds up the spans of each rank, in order of rank.
func Sum(spans []Span) []RankBreakdown {
	at := map[int]int{}
	var out []RankBreakdown
	for i := range spans {
		s := &spans[i]
		k, ok := at[s.Rank]
		if !ok {
			k = len(out)
			at[s.Rank] = k
			out = append(out, RankBreakdown{Rank: s.Rank})
		}
		out[k].Add(s.Category, s.Duration())
		if s.Category == Wait && s.Name == WaitInputName {
			out[k].WaitInput += s.Duration()
		}
	}
	slices.SortFunc(out, func(a, b RankBreakdown) int { return cmp.Compare(a.Rank, b.Rank) })
	return out
}
