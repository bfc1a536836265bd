package history_test

import (
	"errors"
	"fmt"

	"github.com/gangline/gangline/ps/consistency"
	"github.com/gangline/gangline/ps/history"
)

// A shard serves a worker that is two clocks ahead, where the slack is one.
func ExampleCheck() {
	job := history.Job{
		Model:   consistency.Model{Kind: consistency.SSP, Slack: 1, MaxVersionLag: consistency.Unbounded},
		Workers: []consistency.Worker{0, 1},
		Shards:  1,
	}
	var records []history.Record
	for clock := range int64(2) {
		push := history.Record{Kind: history.Sent, Clock: clock, Weight: 32, Finite: true}
		stored := push
		stored.Kind = history.Stored
		records = append(records, push, stored, history.Record{Kind: history.Decided, Verdict: &consistency.Verdict{
			Version: clock, Set: []consistency.Member{{Clock: clock, Weight: 32, Scale: 1}}, Total: 32, Rate: 1,
		}})
	}
	records = append(records,
		history.Record{Kind: history.Asked, Clock: 2, Request: 1},
		history.Record{Kind: history.Served, Clock: 2, Request: 1, Version: 2, Clocks: []int64{2, 0}})
	err := history.Check(job, records)
	var v *history.ViolationError
	fmt.Println(errors.As(err, &v) && v.Rule == history.RuleSlack)
	fmt.Println(err)
	// Output:
	// true
	// history: rule slack: shard 0, worker 0, clock 2, version 2: a read at clock 2 has only 0 clocks of worker 1, the slack is 1 (record 7)
}
