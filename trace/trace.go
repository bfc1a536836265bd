// Package trace holds the one record of what a rank did: the span.
//
// Whoever runs tasks emits a Span a task into a Recorder; ranks hand their
// spans to the launcher as JSON lines (WriteSpans, ReadSpans), which lays them
// over one another (Merge), sums them (Sum) and writes them for a viewer
// (WriteChrome).
//
// The package reads no clock. Times are nanoseconds since an epoch that the
// recording rank chose; Merge moves them to a common one.
package trace

import (
	"fmt"
	"time"
)

// Category says what the time of a span was spent on.
type Category uint8

// The categories.
const (
	// Other is anything that is not counted.
	Other Category = iota
	// Compute is forward and backward work.
	Compute
	// Communication is a task that moves bytes between ranks, including the time
	// for which it waits for its peers.
	Communication
	// Wait is time in which the device had nothing to compute.
	Wait
	// Input is reading a batch.
	Input
	// Update is applying an update rule.
	Update
	// Adding is summing the gradients of micro-batches, or of slices.
	Adding
	categories
)

// String returns the name used in files.
func (c Category) String() string {
	switch c {
	case Other:
		return "other"
	case Compute:
		return "compute"
	case Communication:
		return "communication"
	case Wait:
		return "wait"
	case Input:
		return "input"
	case Update:
		return "update"
	case Adding:
		return "adding"
	case categories:
	}
	return fmt.Sprintf("category(%d)", uint8(c))
}

// ParseCategory is the inverse of String.
func ParseCategory(s string) (Category, error) {
	for c := range categories {
		if c.String() == s {
			return c, nil
		}
	}
	return Other, fmt.Errorf("trace: unknown category %q", s)
}

// MarshalText implements encoding.TextMarshaler.
func (c Category) MarshalText() ([]byte, error) {
	if c >= categories {
		return nil, fmt.Errorf("trace: no name for %v", c)
	}
	return []byte(c.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Category) UnmarshalText(b []byte) error {
	got, err := ParseCategory(string(b))
	*c = got
	return err
}

// Span is one task of one step on one rank, from start to end.
type Span struct {
	Rank int   `json:"r"`
	Step int64 `json:"s"`
	// Task indexes the rank's list in the plan, or is -1 (waiting).
	Task int `json:"t"`
	// Kind is the task's kind, Lane what it occupied, Name what it is called.
	Kind     string   `json:"k,omitempty"`
	Lane     string   `json:"l,omitempty"`
	Name     string   `json:"n,omitempty"`
	Category Category `json:"c"`
	// Start and End are nanoseconds since the recorder's epoch.
	Start int64 `json:"b"`
	End   int64 `json:"e"`
	// Bytes is what the task moved between ranks: the sum of both directions.
	Bytes int64 `json:"y,omitempty"`
}

// Duration is how long the span took.
func (s *Span) Duration() time.Duration { return time.Duration(s.End - s.Start) }

// Recorder keeps the last spans of one rank in a ring of fixed size. It is not
// safe for concurrent use: the executor records under the lock it holds anyway.
type Recorder struct {
	ring    []Span
	next    int
	full    bool
	dropped int64
}

// NewRecorder makes a recorder that keeps the last limit spans (about 136
// bytes each). It panics if limit is not positive.
func NewRecorder(limit int) *Recorder {
	if limit <= 0 {
		panic("trace: NewRecorder needs a positive limit")
	}
	return &Recorder{ring: make([]Span, limit)}
}

// Record keeps a copy of s; the oldest span makes room if the ring is full. It
// allocates nothing.
func (r *Recorder) Record(s *Span) {
	if r.full {
		r.dropped++
	}
	r.ring[r.next] = *s
	r.next++
	if r.next == len(r.ring) {
		r.next, r.full = 0, true
	}
}

// Dropped is the number of spans that were overwritten.
func (r *Recorder) Dropped() int64 { return r.dropped }

// Len is the number of spans held.
func (r *Recorder) Len() int {
	if r.full {
		return len(r.ring)
	}
	return r.next
}

// Spans returns a copy of what is held, in the order recorded.
func (r *Recorder) Spans() []Span {
	out := make([]Span, 0, r.Len())
	if r.full {
		out = append(out, r.ring[r.next:]...)
	}
	return append(out, r.ring[:r.next]...)
}

// Reset forgets all spans and the count of those dropped.
func (r *Recorder) Reset() { r.next, r.full, r.dropped = 0, false, 0 }
