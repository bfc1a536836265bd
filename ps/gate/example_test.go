package gate_test

import (
	"fmt"

	"github.com/gangline/gangline/ps/consistency"
	"github.com/gangline/gangline/ps/gate"
)

// Two of three workers make a version; the third is late.
func Example() {
	g, err := gate.New(gate.Config{
		Model:   consistency.Model{Kind: consistency.Quorum, K: 2},
		Workers: []consistency.Worker{0, 1, 2},
		Shards:  1,
	})
	if err != nil {
		panic(err)
	}
	for _, w := range []consistency.Worker{2, 0, 1} {
		_, why := g.Step(0, gate.Event{
			Kind: gate.EventPush, Worker: w, Seq: consistency.Seq{Clock: 0, Last: true}, Base: 0,
			Ballot: gate.Ballot{Weight: 32, Finite: true},
		})
		fmt.Println(why)
	}
	fmt.Printf("version %d; of worker 1: %v\n", g.Version(), g.Outcome(1, 0))
	// Output:
	// rank 2's clock 0 is whole
	// rank 0's clock 0 is whole; 2 of 2; applied: version 1
	// rank 1's clock 0 was made of version 0, the shard is at 1: late
	// version 1; of worker 1: late
}

// A worker reads while it is at most Slack clocks ahead of the slowest.
func ExampleGate_Step_ssp() {
	g, err := gate.New(gate.Config{
		Model:   consistency.Model{Kind: consistency.SSP, Slack: 1, MaxVersionLag: consistency.Unbounded},
		Workers: []consistency.Worker{0, 1},
		Shards:  1,
	})
	if err != nil {
		panic(err)
	}
	push := func(w consistency.Worker, clock int64) {
		_, why := g.Step(0, gate.Event{
			Kind: gate.EventPush, Worker: w, Seq: consistency.Seq{Clock: clock, Last: true},
			Ballot: gate.Ballot{Weight: 32, Finite: true},
		})
		fmt.Println(why)
	}
	push(0, 0)
	push(0, 1)
	_, why := g.Step(0, gate.Event{Kind: gate.EventRead, Worker: 0, Seq: consistency.Seq{Clock: 2}})
	fmt.Println(why)
	push(1, 0)
	// Output:
	// rank 0's clock 0 is version 1, 0 behind
	// rank 0's clock 1 is version 2, 1 behind
	// rank 0's read for clock 2 waits: rank 1 has 0 clocks, the slack is 1
	// rank 1's clock 0 is version 3, 2 behind; rank 0 reads version 3 for clock 2
}
