package train

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gangline/gangline/params"
	"github.com/gangline/gangline/report"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/ps"
	"github.com/gangline/gangline/strategy"
)

// serve is the life of a server rank: it holds its shard and answers until
// every worker said goodbye.
func (m *member) serve(ctx context.Context, report *report.Rank) error {
	store := m.cfg.Rank - m.setup.Cluster.Workers
	shard, err := m.shard(store)
	if err != nil {
		return fmt.Errorf("rank %d: %w", m.cfg.Rank, err)
	}
	server := ps.NewServer(m.endpoint, shard, m.setup.workers(), ps.Config{
		Patience:   time.Duration(m.setup.Job.Network.TaskTimeout),
		OnSnapshot: snapshotter(store),
		OnDecision: func(why string) { m.cfg.Logger.Debug("store", "store", store, "decision", why) },
	})
	ended := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() { m.tell(ended, func() int64 { return server.Stats().Version }) })
	err = server.Run(ctx)
	close(ended)
	telling.Wait()
	if err != nil {
		return fmt.Errorf("rank %d: %w", m.cfg.Rank, err)
	}
	report.Role = "server"
	return nil
}

// shard makes the server's part of the state, from the checkpoint if there is one.
func (m *member) shard(store int) (*ps.Shard, error) {
	layout, err := ps.LayoutOf(m.setup.Step, m.setup.Program.Plans[strategy.StepPlan], store)
	if err != nil {
		return nil, err
	}
	shard, err := ps.NewShard(layout, m.setup.workers())
	if err != nil || m.from == nil && m.imported == nil {
		return shard, err
	}
	if m.from == nil {
		state := params.New(m.setup.Step)
		state.Begin(m.imported)
		m.imported = nil // the shard has its part
		return shard, shard.Import(state.Pieces(m.setup.Step))
	}
	var pieces []checkpoint.Piece
	err = m.from.Pieces(func(string) bool { return true }, func(p checkpoint.Piece) error {
		pieces = append(pieces, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := shard.Import(pieces); err != nil {
		return nil, fmt.Errorf("%s: %w", m.from.Dir, err)
	}
	shard.SetVersion(m.first())
	return shard, nil
}

// workers are the ranks that contribute to every step.
func (s *Setup) workers() []int {
	ranks := make([]int, s.Cluster.Workers)
	for i := range ranks {
		ranks[i] = i
	}
	return ranks
}

// client connects a worker with all stores.
func (m *member) client() (*ps.Client, error) {
	stores := make([]int, m.setup.Cluster.Servers)
	layouts := make([]ps.Layout, len(stores))
	for i := range stores {
		stores[i] = m.setup.Cluster.Workers + i
		var err error
		if layouts[i], err = ps.LayoutOf(m.setup.Step, m.setup.Program.Plans[strategy.StepPlan], i); err != nil {
			return nil, err
		}
	}
	return ps.NewClient(m.endpoint, m.cfg.Rank, stores, layouts)
}
