package trace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// event is one event of the Chrome trace-event format: "X" is a complete span,
// "M" metadata. Times are microseconds.
//
// Source: "Trace Event Format", the Chromium project.
type event struct {
	Name string    `json:"name"`
	Ph   string    `json:"ph"`
	Cat  string    `json:"cat,omitempty"`
	Pid  int       `json:"pid"`
	Tid  int       `json:"tid"`
	TS   float64   `json:"ts"`
	Dur  *float64  `json:"dur,omitempty"`
	Args eventArgs `json:"args"`
}

// eventArgs is what a viewer shows beside an event.
type eventArgs struct {
	Name  string `json:"name,omitempty"`
	Sort  *int   `json:"sort_index,omitempty"`
	Step  *int64 `json:"step,omitempty"`
	Task  *int   `json:"task,omitempty"`
	Kind  string `json:"kind,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
}

// track is one row of the picture: a lane of a rank.
type track struct {
	rank int
	lane string
}

// WriteChrome writes the spans as Chrome trace-event JSON, which opens in
// Perfetto: a process a rank, a thread a lane, times from the earliest start
// (so that microseconds as floats keep their nanoseconds). Lanes are numbered
// by name.
func WriteChrome(w io.Writer, spans []Span) error {
	tracks, tids := layout(spans)
	bw := bufio.NewWriter(w) // keeps the first error for Flush
	_, _ = bw.WriteString(`{"displayTimeUnit":"ns","traceEvents":[`)
	sep := "\n"
	emit := func(e *event) error {
		b, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("trace: write chrome: %w", err)
		}
		_, _ = bw.WriteString(sep)
		_, _ = bw.Write(b)
		sep = ",\n"
		return nil
	}
	if err := emitNames(tracks, tids, emit); err != nil {
		return err
	}
	var epoch int64
	if len(spans) > 0 {
		epoch = slices.MinFunc(spans, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) }).Start
	}
	for i := range spans {
		s := &spans[i]
		dur := float64(s.End-s.Start) / 1e3
		e := event{
			Name: title(s), Ph: "X", Cat: s.Category.String(), Pid: s.Rank, Tid: tids[track{s.Rank, s.Lane}],
			TS: float64(s.Start-epoch) / 1e3, Dur: &dur,
			Args: eventArgs{Step: &s.Step, Task: &s.Task, Kind: s.Kind, Bytes: s.Bytes},
		}
		if err := emit(&e); err != nil {
			return err
		}
	}
	_, _ = bw.WriteString("\n]}\n")
	if err := bw.Flush(); err != nil {
		return fmt.Errorf("trace: write chrome: %w", err)
	}
	return nil
}

// title is what a box of the viewer says: the kind of task and its name, of
// which a segment's says enough alone.
func title(s *Span) string {
	if s.Kind == "" || s.Kind == s.Name || s.Kind == "compute" {
		return s.Name
	}
	return s.Kind + " " + s.Name
}

// layout numbers the lanes of each rank from 0 in the order of their names.
func layout(spans []Span) ([]track, map[track]int) {
	seen := map[track]int{}
	var tracks []track
	for i := range spans {
		t := track{spans[i].Rank, spans[i].Lane}
		if _, ok := seen[t]; !ok {
			seen[t] = 0
			tracks = append(tracks, t)
		}
	}
	slices.SortFunc(tracks, func(a, b track) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.lane, b.lane))
	})
	for i := 1; i < len(tracks); i++ {
		if tracks[i].rank == tracks[i-1].rank {
			seen[tracks[i]] = seen[tracks[i-1]] + 1
		}
	}
	return tracks, seen
}

// emitNames writes the metadata that names ranks and lanes.
func emitNames(tracks []track, tids map[track]int, emit func(*event) error) error {
	for i, t := range tracks {
		tid := tids[t]
		var events []event
		if i == 0 || tracks[i-1].rank != t.rank {
			events = append(events,
				event{Name: "process_name", Ph: "M", Pid: t.rank, Args: eventArgs{Name: fmt.Sprintf("rank %d", t.rank)}},
				event{Name: "process_sort_index", Ph: "M", Pid: t.rank, Args: eventArgs{Sort: &tracks[i].rank}})
		}
		events = append(events,
			event{Name: "thread_name", Ph: "M", Pid: t.rank, Tid: tid, Args: eventArgs{Name: t.lane}},
			event{Name: "thread_sort_index", Ph: "M", Pid: t.rank, Tid: tid, Args: eventArgs{Sort: &tid}})
		for k := range events {
			if err := emit(&events[k]); err != nil {
				return err
			}
		}
	}
	return nil
}
