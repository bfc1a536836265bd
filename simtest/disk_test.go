package simtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/gangline/gangline/params"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/tensor"
)

// disk is shared by all ranks and outlives them. A checkpoint is written file
// by file where nobody looks, and becomes visible only when it is published:
// the order of things is that of package checkpoint.
type disk struct {
	temp      map[int64]map[string][]byte // by step, then by name
	published map[int64]*saved
	oldest    *saved // of all that were ever published
}

// saved is a published checkpoint.
type saved struct {
	at     int64
	gen    uint32
	cursor []byte
	shards [][]byte           // as checkpoint.Encode made them
	read   []checkpoint.Piece // what pieces has read; nobody may change it
}

func newDisk() *disk {
	return &disk{temp: map[int64]map[string][]byte{}, published: map[int64]*saved{}}
}

// begin makes room for a checkpoint; leftovers of the same step are removed.
func (d *disk) begin(step int64) { d.temp[step] = map[string][]byte{} }

// write begins to put a shard beside the others, and returns what ends it: who
// dies in between leaves half a file.
func (d *disk) write(step int64, name string, pieces []checkpoint.Piece) (end func(), err error) {
	text, err := checkpoint.Encode(name, pieces)
	if err != nil {
		return nil, err
	}
	dir := d.temp[step]
	if dir == nil {
		return nil, fmt.Errorf("shard %s of step %d has no directory", name, step)
	}
	dir[name] = text[:len(text)/2]
	return func() { dir[name] = text }, nil
}

// publish makes a checkpoint of the named shards visible at once.
func (d *disk) publish(step int64, gen uint32, cursor data.Cursor, names []string) (*saved, error) {
	s := &saved{at: step, gen: gen}
	var err error
	if s.cursor, err = json.Marshal(cursor); err != nil {
		return nil, err
	}
	for _, name := range names {
		text := d.temp[step][name]
		if text == nil {
			return nil, fmt.Errorf("the checkpoint of step %d is published without shard %s", step, name)
		}
		s.shards = append(s.shards, bytes.Clone(text))
	}
	delete(d.temp, step)
	d.published[step] = s
	if d.oldest == nil {
		d.oldest = s
	}
	return s, nil
}

// prune keeps the newest checkpoints, and nothing in the making.
func (d *disk) prune(keep int) {
	steps := slices.Sorted(maps.Keys(d.published))
	for i, step := range steps {
		if i < len(steps)-keep {
			delete(d.published, step)
		}
	}
	clear(d.temp)
}

// lose is what may become of files that nobody has published, once their
// writers are dead.
func (d *disk) lose(r *rand.Rand) {
	for _, step := range slices.Sorted(maps.Keys(d.temp)) {
		for _, name := range slices.Sorted(maps.Keys(d.temp[step])) {
			if text := d.temp[step][name]; r.IntN(2) == 0 {
				d.temp[step][name] = text[:r.IntN(len(text)+1)]
			}
		}
	}
}

// latest returns the newest checkpoint, nil if there is none.
func (d *disk) latest() *saved {
	steps := slices.Sorted(maps.Keys(d.published))
	if len(steps) == 0 {
		return nil
	}
	return d.published[steps[len(steps)-1]]
}

// open reads the shards, through the format of files.
func (s *saved) open() (*checkpoint.Checkpoint, error) { return checkpoint.InMemory(s.shards...) }

// step is where a run goes on: the position in the data decides.
func (s *saved) step(p *problem) (int64, error) {
	var at data.Cursor
	if err := json.Unmarshal(s.cursor, &at); err != nil {
		return 0, err
	}
	step, err := p.order.StepAt(at, p.fingerprint)
	if err == nil && step != s.at {
		err = fmt.Errorf("the checkpoint of step %d stands before step %d in the data", s.at, step)
	}
	return step, err
}

// pieces returns all pieces of all shards.
func (s *saved) pieces() ([]checkpoint.Piece, error) {
	if s.read != nil {
		return s.read, nil
	}
	c, err := s.open()
	if err != nil {
		return nil, err
	}
	err = c.Pieces(func(string) bool { return true }, func(p checkpoint.Piece) error {
		s.read = append(s.read, p)
		return nil
	})
	return s.read, err
}

// state puts the whole state together, as a worker or a reader does.
func (s *saved) state(p *problem) (params.State, error) {
	c, err := s.open()
	if err != nil {
		return nil, err
	}
	state := p.newState()
	return state, state.Restore(c)
}

// assemble is the whole state that the shards of some servers give.
func assemble(p *problem, shards [][]checkpoint.Piece) (params.State, error) {
	s := &saved{}
	for i, pieces := range shards {
		text, err := checkpoint.Encode(fmt.Sprintf("server-%d", i), pieces)
		if err != nil {
			return nil, err
		}
		s.shards = append(s.shards, text)
	}
	return s.state(p)
}

// clone copies tensors that go into a message.
func clone(t *tensor.Tensor) *tensor.Tensor {
	if t == nil {
		return nil
	}
	return t.Clone()
}
