package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/trace"
)

// spansLimit bounds the spans read of one rank.
const spansLimit = 1 << 20

// mergeSpans makes one trace of what the ranks left, and removes that. Servers
// leave none.
func (f *trainFlags) mergeSpans(world int) error {
	var parts []trace.Part
	for r := range world {
		spans, err := readSpans(f.spansOf(r))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("trace: rank %d: %w", r, err)
		}
		parts = append(parts, trace.Part{Spans: spans}) // on the coordinator's clock already
	}
	f.removeSpans(world)
	return command.WriteWhole(f.trace, func(out *os.File) error { return trace.WriteChrome(out, trace.Merge(parts...)) })
}

func readSpans(path string) ([]trace.Span, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	spans, err := trace.ReadSpans(file, spansLimit)
	return spans, errors.Join(err, file.Close())
}

// removeSpans removes what ranks may have left; there may be nothing.
func (f *trainFlags) removeSpans(world int) {
	if f.trace == "" {
		return
	}
	for r := range world {
		_ = os.Remove(f.spansOf(r))
	}
}
