//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/launch"
	"github.com/gangline/gangline/train"
)

// endlessJob sums dense gradients in many small buckets, and rows of tables.
const endlessJob = `
model: {kind: ctr, hidden: [48, 32], dim: 4}
data: {train: {format: generated, rows: 3000, seed: 7, buckets: 4096}}
batch: 120
epochs: 1000000
optimizer: {kind: adam, lr: 0.001}
strategy: {kind: allreduce, bucket: 2KiB}
`

// trainUntilError is a rank of a job that something happens to.
func trainUntilError(ctx context.Context, place launch.Place, deadline time.Duration) (ending, error) {
	j, err := job.Parse("chaos", []byte(endlessJob), []string{
		fmt.Sprintf("strategy.workers=%d", place.World), "network.task_timeout=" + deadline.String(),
	})
	if err != nil {
		return ending{}, err
	}
	var begun sync.Once
	ready := func(int, coord.Progress) { begun.Do(func() { fmt.Println("ready") }) }
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	place, coordinator, err := launch.Meet(ctx, place, coord.ServerConfig{
		JoinTimeout: time.Minute, HeartbeatTimeout: 30 * time.Second, Logger: logger, OnProgress: ready,
	})
	if err != nil {
		return ending{}, err
	}
	if coordinator == nil { // rank 0 says when all are at it
		fmt.Println("ready")
	}
	_, err = train.Run(ctx, train.Config{Job: j, Rank: place.Rank, Address: place.Address, Token: place.Token, Led: true, Logger: logger})
	end := ending{At: time.Now().UnixNano()}
	if coordinator != nil {
		_ = coordinator.Close() // the job is over
	}
	abort, ok := errors.AsType[*coord.AbortError](err)
	if !ok {
		return ending{}, fmt.Errorf("no verdict: %w", err)
	}
	end.Blamed, end.Text = abort.Rank, abort.Text
	for _, m := range abort.Missing {
		end.Missing = append(end.Missing, m.Rank)
	}
	return end, nil
}
