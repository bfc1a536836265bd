package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// form proves that everything named exists and fits where it stands.
func (c *checker) form() {
	p := c.p
	if p.Window < 1 || p.Window > MaxWindow {
		c.plan("window %d: want 1 to %d steps in flight", p.Window, MaxWindow)
	}
	c.formValues()
	for i := range p.Segs {
		if s := &p.Segs[i]; s.Update != NoState && !c.isParam(s.Update) {
			c.plan("segment %d (%s) updates value %d, which is no parameter", i, s.Name, s.Update)
		}
	}
	for g, ranks := range p.Groups {
		if len(ranks) == 0 {
			c.plan("group %d has no ranks", g)
		}
		for i, r := range ranks {
			if r < 0 || r >= len(p.Ranks) {
				c.plan("group %d: rank %d does not exist: the plan has %d ranks", g, r, len(p.Ranks))
			}
			if i > 0 && ranks[i-1] >= r {
				c.plan("group %d: rank %d comes after rank %d: list ranks once, ascending", g, r, ranks[i-1])
			}
		}
	}
	names := make(map[string]bool)
	for i, s := range p.Stores {
		if names[s.Name] {
			c.plan("store %d: the name %q is taken", i, s.Name)
		}
		names[s.Name] = true
	}
	for i := range p.Holdings {
		c.formHolding(i, &p.Holdings[i])
	}
	for rank, tasks := range p.Ranks {
		for i := range tasks {
			c.formTask(rank, i, &tasks[i])
		}
		c.formTags(rank)
	}
}

func (c *checker) isParam(v int) bool {
	return v >= 0 && v < len(c.p.Values) && c.p.Values[v].Class == Param
}

func (c *checker) formValues() {
	names := make(map[string]bool)
	for i := range c.p.Values {
		v := &c.p.Values[i]
		switch {
		case v.Name == "":
			c.plan("value %d has no name", i)
		case names[v.Name]:
			c.plan("value %d: the name %q is taken", i, v.Name)
		case v.DType.Size() == 0:
			c.plan("value %d (%s) has no dtype", i, v.Name)
		case v.Class < Param || v.Class > Scalar:
			c.plan("value %d (%s) has no class", i, v.Name)
		case v.Class == Param && v.State != i:
			c.plan("value %d (%s) is a parameter: its state must be itself", i, v.Name)
		case v.State != NoState && !c.isParam(v.State):
			c.plan("value %d (%s): its state %d is no parameter", i, v.Name, v.State)
		case v.Class == Slot && v.State == NoState:
			c.plan("value %d (%s) is a slot of no parameter", i, v.Name)
		case (v.Class == Param || v.Class == Slot) && !v.Shape.Static():
			c.plan("value %d (%s) lasts over steps: its shape %v must be static", i, v.Name, v.Shape)
		case v.Class == Slot && !v.Shape.Equal(c.p.Values[v.State].Shape):
			c.plan("value %d (%s) is a slot: its shape %v must be that of its parameter, %v",
				i, v.Name, v.Shape, c.p.Values[v.State].Shape)
		}
		names[v.Name] = true
	}
}

func (c *checker) formHolding(i int, h *Holding) {
	p := c.p
	if h.State < 0 || h.State >= len(p.Values) || p.Values[h.State].Class != Param && p.Values[h.State].Class != Slot {
		c.plan("holding %d is of value %d, which is no parameter or slot", i, h.State)
		return
	}
	if (h.Rank >= 0) == (h.Store >= 0) || h.Rank >= len(p.Ranks) || h.Store >= len(p.Stores) {
		c.plan("holding %d (%s): want a rank of the plan or a store of it, and -1 for the other", i, c.value(h.State))
		return
	}
	if n := p.Values[h.State].Shape.Elems(); h.Lo < 0 || h.Hi > n || h.Lo > h.Hi || h.Lo == h.Hi && !c.isTable(h) {
		c.plan("holding %d (%s): range %d..%d is not within its %d elements", i, c.value(h.State), h.Lo, h.Hi, n)
	}
}

// formTask proves that a task is well made in itself.
func (c *checker) formTask(rank, i int, t *Task) {
	p := c.p
	bad := func(format string, args ...any) { c.task(rank, i, format, args...) }
	for _, r := range slices.Concat(t.In, t.Out) {
		if r.Value < 0 || r.Value >= len(p.Values) || r.Micro < 0 || r.Use < 0 {
			bad("value %d@%d:%d does not exist", r.Value, r.Micro, r.Use)
			return
		}
	}
	for _, d := range t.After {
		switch {
		case d.Task < 0 || d.Task >= len(p.Ranks[rank]) || d.Lag < 0:
			bad("waits for task %d~%d, which does not exist", d.Task, d.Lag)
		case d.Lag == 0 && d.Task >= i:
			bad("waits for task %d, which does not come before it: move it up, or wait for an earlier step (lag)", d.Task)
		}
	}
	lane, ok := t.Lane, true
	switch t.Kind {
	case Feed:
		ok = lane.Kind == Reader && len(t.In) == 0
	case Compute:
		ok = lane.Kind == Device && t.Seg >= 0 && t.Seg < len(p.Segs)
	case Add:
		ok = lane.Kind == Device && len(t.In) > 0 && len(t.Out) == 1
	case Send, Recv:
		if t.Peer < 0 || t.Peer >= len(p.Ranks) || t.Peer == rank {
			bad("peer %d is no other rank", t.Peer)
		}
		ok = lane == LinkLane(t.Peer, t.Kind == Recv) && len(t.In)+len(t.Out) == 1 && (len(t.In) == 1) == (t.Kind == Send)
	case Collective, Commit:
		if t.Group < 0 || t.Group >= len(p.Groups) || !slices.Contains(p.Groups[t.Group], rank) {
			bad("group %d does not contain rank %d: add the rank, or drop the task", t.Group, rank)
		}
		ok = lane == Lane{Group, t.Group}
	case Pull, Push:
		if t.Store < 0 || t.Store >= len(p.Stores) {
			bad("store %d does not exist: the plan has %d stores", t.Store, len(p.Stores))
		}
		ok = lane == Lane{Store, t.Store}
	default:
		bad("%v is no kind of task", t.Kind)
		return
	}
	if !ok {
		bad("lane %v, %d values in and %d out do not fit a %v (%s)", lane, len(t.In), len(t.Out), t.Kind, wanted(t))
		return
	}
	c.formFlow(bad, t)
}

// wanted says what lane and values a task of a kind has.
func wanted(t *Task) string {
	switch t.Kind {
	case Feed:
		return "want a reader lane and values out only"
	case Compute:
		return "want a device lane and an existing segment"
	case Add:
		return "want a device lane, values in, one out"
	case Send:
		return fmt.Sprintf("want lane %v and one value in", LinkLane(t.Peer, false))
	case Recv:
		return fmt.Sprintf("want lane %v and one value out", LinkLane(t.Peer, true))
	case Collective, Commit:
		return fmt.Sprintf("want lane %v", Lane{Group, t.Group})
	case Pull, Push:
		return fmt.Sprintf("want lane %v", Lane{Store, t.Store})
	}
	return ""
}

// formFlow proves that what goes in fits what comes out.
func (c *checker) formFlow(bad func(string, ...any), t *Task) {
	val := func(r Ref) *Value { return &c.p.Values[r.Value] }
	same := func(a, b Ref) {
		x, y := val(a), val(b)
		if x.DType != y.DType || x.Shape.Static() && y.Shape.Static() && !x.Shape.Equal(y.Shape) {
			bad("%s is %v %v but %s is %v %v: they must be alike", word(x.Name), x.DType, x.Shape, word(y.Name), y.DType, y.Shape)
		}
	}
	switch t.Kind {
	case Add:
		for _, r := range t.In {
			same(r, t.Out[0])
		}
	case Collective:
		c.formCollective(bad, same, t)
	case Commit:
		if len(t.In) < 2 || len(t.Out) != 2 {
			bad("want (weight, loss, gradients...) in and (total weight, total loss) out, got %d and %d values", len(t.In), len(t.Out))
			return
		}
		for _, r := range slices.Concat(t.In[:2], t.Out) {
			if v := val(r); v.Class != Scalar || v.Shape.Elems() != 1 {
				bad("%s must be a scalar", word(v.Name))
			}
		}
	case Pull:
		rows := len(t.Out) - len(t.In)
		for i, r := range t.Out {
			v := val(r)
			switch {
			case rows < 0 || (i < rows) != (v.Class == Param) || v.State == NoState:
				bad("%s: want parameters out first, then the rows of a table for each keys in", word(v.Name))
				return
			case i >= rows && val(t.In[i-rows]).Class != Key:
				bad("%s names the rows %s but is no key", word(val(t.In[i-rows]).Name), word(v.Name))
			}
		}
		if len(t.Out) == 0 {
			bad("pulls nothing: drop it")
		}
	case Push:
		if _, err := c.pushed(t); err != nil {
			bad("%v", err)
		}
	case Feed, Compute, Send, Recv:
	}
}

func (c *checker) formCollective(bad func(string, ...any), same func(a, b Ref), t *Task) {
	want := 1
	if t.Op == AllGatherRows {
		want = 2
	}
	switch {
	case t.Op < AllReduce || t.Op > AllGatherRows:
		bad("%v is nothing that a collective does", t.Op)
	case len(t.In) != want || len(t.Out) != want:
		bad("want %d values in and out, got %d and %d", want, len(t.In), len(t.Out))
	case t.Op == AllGatherRows && (c.p.Values[t.In[0].Value].Class != Key || c.p.Values[t.Out[0].Value].Class != Key):
		bad("want (keys, rows) in and out")
	case t.Op == AllReduce || t.Op == Broadcast || t.Op == AllGatherRows:
		for i := range t.In {
			same(t.In[i], t.Out[i])
		}
	}
}

// pushed lists the gradients that a Push gives, without their keys.
func (c *checker) pushed(t *Task) ([]Ref, error) {
	var grads []Ref
	for i := 0; i < len(t.In); i++ {
		v := &c.p.Values[t.In[i].Value]
		if v.Class == Key {
			if i++; i == len(t.In) {
				return nil, fmt.Errorf("keys %s have no rows after them", word(v.Name))
			}
			v = &c.p.Values[t.In[i].Value]
		}
		if v.Class != Grad || v.State == NoState {
			return nil, fmt.Errorf("%s is no gradient of a parameter", word(v.Name))
		}
		grads = append(grads, t.In[i])
	}
	if len(grads) == 0 || len(t.Out) > 0 {
		return nil, fmt.Errorf("want gradients in and nothing out")
	}
	return grads, nil
}

// formTags proves that a tag tells the messages of a rank apart: those to or
// from one peer, and those to the stores.
func (c *checker) formTags(rank int) {
	type purpose struct {
		peer    int // none for stores
		receive bool
		tag     uint32
	}
	first := make(map[purpose]int)
	use := func(task int, u purpose) {
		if before, taken := first[u]; taken && before != task {
			c.task(rank, task, "tag %d is taken by %s: give it a tag of its own", u.tag, c.there(rank, before))
			return
		}
		first[u] = task
	}
	for i := range c.p.Ranks[rank] {
		switch t := &c.p.Ranks[rank][i]; t.Kind {
		case Send, Recv:
			use(i, purpose{t.Peer, t.Kind == Recv, t.Tag})
		case Collective, Commit:
			if t.Group < 0 || t.Group >= len(c.p.Groups) {
				continue
			}
			before := len(c.findings)
			for _, peer := range c.p.Groups[t.Group] {
				if len(c.findings) == before { // one finding a task
					use(i, purpose{peer, false, t.Tag})
				}
				if len(c.findings) == before {
					use(i, purpose{peer, true, t.Tag})
				}
			}
		case Pull, Push:
			use(i, purpose{none, false, t.Tag})
		case Feed, Compute, Add:
		}
	}
}

// holders proves that the owners of a state cover it once.
func (c *checker) holders() {
	for v := range c.p.Values {
		if class := c.p.Values[v].Class; class != Param && class != Slot {
			continue
		}
		var owners []*Holding
		rows := 0
		for i := range c.p.Holdings {
			if h := &c.p.Holdings[i]; h.State == v && h.Owner {
				owners = append(owners, h)
				if c.isTable(h) {
					rows++
				}
			}
		}
		if rows > 0 {
			c.tableOwners(v, owners, rows)
			continue
		}
		slices.SortStableFunc(owners, func(a, b *Holding) int { return cmp.Compare(a.Lo, b.Lo) })
		c.cover(v, owners)
	}
}

// cover reports the first gap or overlap of owners that are sorted by Lo.
func (c *checker) cover(v int, owners []*Holding) {
	n := c.p.Values[v].Shape.Elems()
	at := 0
	for _, h := range owners {
		switch {
		case h.Lo > at:
			c.plan("nobody owns elements %d..%d of %s: give them a holding", at, h.Lo, c.value(v))
			return
		case h.Lo < at:
			c.plan("elements %d..%d of %s have two owners: make one of them a copy", h.Lo, min(at, h.Hi), c.value(v))
			return
		}
		at = h.Hi
	}
	if at < n {
		c.plan("nobody owns elements %d..%d of %s: give them a holding", at, n, c.value(v))
	}
}

func (c *checker) tableOwners(v int, owners []*Holding, rows int) {
	if rows != len(owners) {
		c.plan("%s is held by rows and by ranges: hold it one way", c.value(v))
		return
	}
	for store := range c.p.Stores {
		n := 0
		for _, h := range owners {
			if h.Store == store {
				n++
			}
		}
		if n != 1 {
			c.plan("store %d holds the rows of %s %d times: rows are spread over all stores, so each must hold them once", store, c.value(v), n)
		}
	}
}
