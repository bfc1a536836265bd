package trace_test

import (
	"fmt"
	"os"
	"time"

	"github.com/gangline/gangline/trace"
)

// Spans of two ranks are laid over one another and summed.
func Example() {
	r := trace.NewRecorder(1 << 10)
	r.Record(&trace.Span{Rank: 0, Name: "forward", Category: trace.Compute, Start: 0, End: 3e6})
	r.Record(&trace.Span{Rank: 0, Name: "sum w", Category: trace.Communication, Start: 2e6, End: 5e6})
	other := []trace.Span{{Rank: 1, Name: "forward", Category: trace.Compute, Start: 1e6, End: 2e6}}
	all := trace.Merge(trace.Part{Spans: r.Spans()}, trace.Part{Spans: other, Offset: time.Millisecond})
	for _, b := range trace.Sum(all) {
		fmt.Println("rank", b.Rank, "compute", b.Compute, "communication", b.Communication)
	}
	if err := trace.WriteSpans(os.Stdout, all[:1]); err != nil {
		fmt.Println(err)
	}
	// Output:
	// rank 0 compute 3ms communication 3ms
	// rank 1 compute 1ms communication 0s
	// {"r":0,"s":0,"t":0,"n":"forward","c":"compute","b":0,"e":3000000}
}
