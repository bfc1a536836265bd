package train

import (
	"context"
	"maps"
	"strconv"

	"github.com/gangline/gangline/params"
	"github.com/gangline/gangline/train/meet"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// sharded holds a shard of the state, and of what is not cut all (strategy zero).
type sharded struct {
	*local
	shards  params.Shards
	workers meet.Workers
}

// plannedShards says what a worker answers for by its plan; nil if nothing is cut.
func plannedShards(p *plan.Plan, rank int) params.Shards {
	var sh params.Shards
	for i := range p.Values {
		v := &p.Values[i]
		if !v.Sharded || v.Class != plan.Param && v.Class != plan.Slot {
			continue
		}
		if sh == nil {
			sh = params.Shards{}
		}
		lo, hi := p.Part(rank, i)
		sh[v.Name] = params.Shard{Lo: lo, Hi: hi, Whole: !v.Partial()}
	}
	return sh
}

func newSharded(m *member, sh params.Shards) (*sharded, error) {
	s := &sharded{shards: sh, workers: m.workers()}
	s.local = &local{setup: m.setup, rank: m.cfg.Rank, state: sh.New(m.setup.Step)}
	sh.Begin(s.state, m.imported)
	if m.from == nil {
		return s, nil
	}
	return s, sh.Restore(s.state, m.setup.Step, m.from)
}

func (s *sharded) spread() bool { return true }

func (s *sharded) save(_ context.Context, _ int64, dir string) ([]checkpoint.Shard, error) {
	shard, err := checkpoint.WriteShard(dir, "worker-"+strconv.Itoa(s.rank), s.shards.Pieces(s.state, s.setup.Step, s.rank == 0))
	return []checkpoint.Shard{shard}, err
}

// params gathers the parameters on rank 0, where they are in shards.
func (s *sharded) params(ctx context.Context, version int64) (params.State, error) {
	cut := params.State{}
	for i := range s.setup.Step.Params {
		v := s.setup.Step.Params[i].Var
		if part, ok := s.shards[v.Name]; ok && !part.Whole {
			cut[v.Name] = nil
			if s.rank == 0 {
				cut[v.Name] = tensor.New(v.DType, v.Shape...)
			}
		}
	}
	whole, err := s.local.params(ctx, version)
	if err != nil || len(cut) == 0 {
		return whole, err
	}
	var own []checkpoint.Piece
	for _, p := range s.shards.Pieces(s.state, s.setup.Step, false) {
		if _, ok := cut[p.Name]; ok {
			own = append(own, p)
		}
	}
	name := func(rank int) string { return "worker-" + strconv.Itoa(rank) }
	text, err := checkpoint.Encode(name(s.rank), own)
	if err != nil {
		return nil, err
	}
	all := [][]byte{text}
	err = s.workers.Gather(ctx, paramsTag, "parameters", text, func(_ int, text []byte) error {
		all = append(all, text)
		return nil
	})
	if err != nil || s.rank != 0 {
		return nil, err
	}
	c, err := checkpoint.InMemory(all...)
	if err != nil {
		return nil, err
	}
	maps.Copy(whole, cut)
	return whole, c.AssembleAll(cut)
}
