package simtest

import (
	"fmt"

	"github.com/gangline/gangline/ps"
)

// save is a checkpoint in the making, of which rank 0 waits for parts.
type save struct {
	names   []string
	missing int
	publish func()
	own     func() // of another rank: what it does once rank 0 has made the directory
	told    int64  // the step of the last directory that rank 0 has told of
}

// saving is what workers say to each other of a checkpoint: rank 0 that there is a
// directory, the others that their shard is in it.
type saving struct {
	step int64
	name string // empty: of rank 0
}

// save writes the checkpoint of the step that the worker is at: the shards, then, by rank
// 0, the publication, in which it exists. Where the state is spread over the workers, all
// write, and the others go on once they have; else rank 0 alone.
func (w *worker) save(then func()) {
	switch {
	case w.savedAt == w.at || w.rank != 0 && !w.spread():
		then()
		return
	case w.rank != 0:
		w.savedAt = w.at
		w.offer(then)
		return
	}
	w.c.disk.begin(w.at)
	s := &save{}
	w.saves = s
	s.publish = func() {
		w.after(w.c.work(w.rank), func() {
			w.publish(s.names)
			then()
		})
	}
	if len(w.links) > 0 {
		w.snapshots(s)
		return
	}
	s.names, s.missing = make([]string, 1), 1
	if w.spread() {
		s.names, s.missing = make([]string, w.c.s.workers), w.c.s.workers
		for rank := 1; rank < w.c.s.workers; rank++ {
			w.send(rank, tagSave, saving{step: w.at})
		}
	}
	w.shard(func(name string) { s.part(0, name) })
}

// part takes the name of a shard that is written.
func (s *save) part(rank int, name string) {
	s.names[rank] = name
	if s.missing--; s.missing == 0 {
		s.publish()
	}
}

// snapshots has the stores write.
func (w *worker) snapshots(s *save) {
	s.names, s.missing = make([]string, len(w.links)), len(w.links)
	for i, l := range w.links {
		l.call(ps.Event{Kind: ps.EventSnapshot, Step: w.at}, nil, func(a answer) { s.part(i, a.receipt) })
	}
}

// shard writes what this worker has to save.
func (w *worker) shard(end func(name string)) {
	name := fmt.Sprintf("worker-%d", w.rank)
	written, err := w.c.disk.write(w.at, name, w.pieces())
	w.must(err)
	if err != nil {
		return
	}
	w.after(w.c.work(w.rank), func() {
		written()
		end(name)
	})
}

// offer writes the shard of another rank than 0, once there is a directory.
func (w *worker) offer(then func()) {
	if w.saves == nil {
		w.saves = &save{told: -1}
	}
	at := w.at
	w.saves.own = func() {
		w.saves.own = nil
		w.shard(func(name string) {
			w.send(0, tagSave, saving{at, name})
			then()
		})
	}
	if w.saves.told == at {
		w.saves.own()
	}
}

// saving takes what another worker says of a checkpoint.
func (w *worker) saving(from int, m saving) {
	if m.name != "" {
		w.saves.part(from, m.name)
		return
	}
	if w.saves == nil {
		w.saves = &save{}
	}
	w.saves.told = m.step
	if w.saves.own != nil {
		w.saves.own()
	}
}

// publish makes a checkpoint of shards.
func (w *worker) publish(names []string) {
	c := w.c
	s, err := c.disk.publish(w.at, w.gen, c.problem.order.CursorAt(w.at, c.problem.fingerprint), names)
	if err != nil {
		c.violate("%v", err)
		return
	}
	w.savedAt = w.at
	c.checkSaved(w.member, s)
	c.disk.prune(c.s.keep)
}
