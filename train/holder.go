package train

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/gangline/gangline/params"
	"github.com/gangline/gangline/report"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/ps"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
)

// holder is where a worker's parameters live: here (local), or on servers
// (remote). version is always the number of steps applied.
type holder interface {
	// shared are the tensors that the executors of this worker share.
	shared() params.State
	// stores is what the executor of the step plan pushes to; evalStores what
	// that of the eval plan reads version from. nil if nothing is remote.
	stores() exec.Stores
	evalStores(version int64) exec.Stores
	// spread reports whether every worker has pieces of the state that no other has:
	// then all take part in save and params, and if not, rank 0 alone calls them.
	spread() bool
	// save writes the shards of a checkpoint that this rank answers for into dir.
	save(ctx context.Context, version int64, dir string) ([]checkpoint.Shard, error)
	// params returns all parameters, whole, without slots.
	params(ctx context.Context, version int64) (params.State, error)
	// gradients says what became of contributions; rank 0 of remote says it
	// for all workers.
	gradients(ctx context.Context, ex *exec.Exec) (report.Gradients, error)
	// leave tells whoever serves this worker that it is done.
	leave(ctx context.Context) error
}

// local holds everything in this process.
type local struct {
	setup *Setup
	rank  int
	state params.State
	// lost are the pieces of what this worker's compressed gradients lost; nil: nothing.
	lost func() []checkpoint.Piece
}

func newLocal(s *Setup, rank int, from *checkpoint.Checkpoint, imported params.State) (*local, error) {
	l := &local{setup: s, rank: rank, state: params.New(s.Step)}
	for _, v := range strategy.Beside(s.Program, s.Step) {
		l.state[v.Name] = tensor.New(v.DType, v.Shape...)
	}
	l.state.Begin(imported)
	if from != nil {
		if err := l.state.Restore(from); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *local) shared() params.State { return l.state }

func (l *local) stores() exec.Stores { return nil }

func (l *local) evalStores(int64) exec.Stores { return nil }

func (l *local) leave(context.Context) error { return nil }

// pieces are those that this rank saves. What all workers hold alike, rank 0 saves.
func (l *local) pieces() []checkpoint.Piece {
	var all []checkpoint.Piece
	if l.rank == 0 {
		all = l.state.Pieces(l.setup.Step)
		for _, v := range strategy.Beside(l.setup.Program, l.setup.Step) {
			all = append(all, checkpoint.Piece{Name: v.Name, Shape: v.Shape, Hi: v.Shape.Elems(), Data: l.state[v.Name]})
		}
	}
	if l.lost != nil {
		all = append(all, l.lost()...)
	}
	return all
}

func (l *local) spread() bool { return l.lost != nil }

func (l *local) save(_ context.Context, _ int64, dir string) ([]checkpoint.Shard, error) {
	s, err := checkpoint.WriteShard(dir, "worker-"+strconv.Itoa(l.rank), l.pieces())
	return []checkpoint.Shard{s}, err
}

func (l *local) params(context.Context, int64) (params.State, error) {
	return l.state.Only(l.setup.Step), nil
}

func (l *local) gradients(_ context.Context, ex *exec.Exec) (report.Gradients, error) {
	var g report.Gradients
	for _, a := range ex.Accounts() {
		g.Add(report.Gradients{Pushed: a.Pushed, Applied: a.Applied, Dropped: a.Dropped, Pending: a.Pending})
	}
	return g, nil
}

// remote reaches the servers.
type remote struct {
	setup  *Setup
	rank   int
	client *ps.Client
	copies params.State // what the last pull brought
}

func (r *remote) shared() params.State { return r.copies }

func (r *remote) stores() exec.Stores { return r.client }

func (r *remote) evalStores(version int64) exec.Stores { return &pinned{r.client, version} }

func (r *remote) leave(ctx context.Context) error { return r.client.Close(ctx) }

func (r *remote) spread() bool { return false }

func (r *remote) save(ctx context.Context, version int64, dir string) ([]checkpoint.Shard, error) {
	receipts, err := r.client.Snapshot(ctx, version, dir)
	if err != nil {
		return nil, err
	}
	shards := make([]checkpoint.Shard, len(receipts))
	for i, text := range receipts {
		if err := json.Unmarshal(text, &shards[i]); err != nil {
			return nil, fmt.Errorf("server %d: receipt of a shard: %w", i, err)
		}
	}
	return shards, nil
}

func (r *remote) params(ctx context.Context, version int64) (params.State, error) {
	encoded, err := r.client.Snapshot(ctx, version, "")
	if err != nil {
		return nil, err
	}
	c, err := checkpoint.InMemory(encoded...)
	if err != nil {
		return nil, err
	}
	s := params.State{}
	for i := range r.setup.Step.Params {
		v := r.setup.Step.Params[i].Var
		t := tensor.New(v.DType, v.Shape...)
		params.FillInit(t, v, 0)
		s[v.Name] = t
	}
	return s, c.AssembleAll(s)
}

func (r *remote) gradients(ctx context.Context, _ *exec.Exec) (report.Gradients, error) {
	var g report.Gradients
	if r.rank != 0 {
		return g, nil
	}
	stats, err := r.client.Stats(ctx)
	for i := range stats {
		s := &stats[i]
		g.Add(report.Gradients{Pushed: s.Pushed, Applied: s.Applied, Dropped: s.Dropped(), Pending: s.Pending})
	}
	return g, err
}

// pinned lets an evaluation, which counts steps of its own, read one version.
type pinned struct {
	*ps.Client
	version int64
}

// Pull implements exec.Stores.
func (p *pinned) Pull(ctx context.Context, store int, _ int64, parts []ps.Part) error {
	return p.Client.Pull(ctx, store, p.version, parts)
}
