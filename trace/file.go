package trace

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// lineMax bounds one line of a span file in bytes: names come from plans and
// are short, so a longer line is not ours.
const lineMax = 1 << 16

// ErrLimit says that a span file holds more than the reader allows.
var ErrLimit = errors.New("trace: limit exceeded")

// WriteSpans writes one JSON object a line, with one-letter keys.
func WriteSpans(w io.Writer, spans []Span) error {
	bw := bufio.NewWriter(w)
	enc := json.NewEncoder(bw)
	for i := range spans {
		if err := enc.Encode(&spans[i]); err != nil {
			return fmt.Errorf("trace: write span %d: %w", i, err)
		}
	}
	if err := bw.Flush(); err != nil {
		return fmt.Errorf("trace: write spans: %w", err)
	}
	return nil
}

// ReadSpans reads what WriteSpans wrote, at most limit spans. Empty lines are
// skipped. An error names the line, counted from 1; the spans before it are
// returned with it, so that the file of a rank that died in mid-line is of use.
func ReadSpans(r io.Reader, limit int) ([]Span, error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, lineMax)
	var out []Span
	line := 0
	for sc.Scan() {
		line++
		if len(sc.Bytes()) == 0 {
			continue
		}
		if len(out) == limit {
			return out, fmt.Errorf("%w: line %d: more than %d spans", ErrLimit, line, limit)
		}
		var s Span
		if err := json.Unmarshal(sc.Bytes(), &s); err != nil {
			return out, fmt.Errorf("trace: line %d: %w", line, err)
		}
		if s.End < s.Start {
			return out, fmt.Errorf("trace: line %d: span ends at %d before it starts at %d", line, s.End, s.Start)
		}
		out = append(out, s)
	}
	if err := sc.Err(); err != nil {
		return out, fmt.Errorf("trace: line %d: %w", line+1, err)
	}
	return out, nil
}
