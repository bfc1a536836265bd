package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// form proves that everything named exists and fits where it stands.
func (c *checker) form() {
	p := c.p
	if p.Window < 1 || p.Window > MaxWindow {
		c.plan("window %d: want 1 to %d steps in flight", p.Window, MaxWindow)
	}
	if p.Slices < 0 || p.Slices > plan.MaxSlices {
		c.plan("%d slices: want 0 to %d", p.Slices, plan.MaxSlices)
	}
	names := make(map[string]int, len(p.Values))
	for i := range p.Values {
		names[p.Values[i].Name]++
	}
	for i := range p.Values {
		if v := &p.Values[i]; names[v.Name] > 1 {
			c.plan("value %d: two values are named %q", i, v.Name)
		} else if wrong := c.wrongValue(i, v); wrong != "" {
			c.plan("value %d (%s) %s", i, v.Name, wrong)
		}
	}
	if len(c.findings) == 0 {
		c.arenas()
	}
	for i, s := range p.Segs {
		if s.Update != plan.NoState && !c.isParam(s.Update) {
			c.plan("segment %d (%s) updates value %d, which is no parameter", i, s.Name, s.Update)
		}
	}
	for g, ranks := range p.Groups {
		ok := len(ranks) > 0
		for i, r := range ranks {
			ok = ok && r >= 0 && r < len(p.Ranks) && (i == 0 || ranks[i-1] < r)
		}
		if !ok {
			c.plan("group %d: ranks %v: want at least one, each once, ascending, below %d", g, ranks, len(p.Ranks))
		}
	}
	c.formHosts()
	for i := range p.Holdings {
		c.formHolding(i, &p.Holdings[i])
	}
	for rank, tasks := range p.Ranks {
		for i := range tasks {
			c.formTask(rank, i, &tasks[i])
		}
	}
}

func (c *checker) isParam(v int) bool {
	return v >= 0 && v < len(c.p.Values) && c.p.Values[v].Class == plan.Param
}

// wrongValue says what is wrong with a value.
func (c *checker) wrongValue(i int, v *plan.Value) string {
	switch {
	case v.DType.Size() == 0:
		return "has no dtype"
	case v.Class < plan.Param || v.Class > plan.Scalar:
		return "has no class"
	case v.Class == plan.Param && v.State != i:
		return "is a parameter: its state must be itself"
	case v.State != plan.NoState && !c.isParam(v.State):
		return fmt.Sprintf("is of value %d, which is no parameter", v.State)
	case v.Class == plan.Slot && v.State == plan.NoState:
		return "is a slot of no parameter"
	case c.lasts(i) && !v.Shape.Static():
		return fmt.Sprintf("lasts over steps: its shape %v must be static", v.Shape)
	case v.Class == plan.Slot && !v.Shape.Equal(c.p.Values[v.State].Shape):
		return fmt.Sprintf("is a slot: its shape %v must be that of its parameter, %v", v.Shape, c.p.Values[v.State].Shape)
	case v.Sharded && (v.State == plan.NoState || v.Class != plan.Param && v.Class != plan.Slot && v.Class != plan.Grad || !v.Shape.Static()):
		return "is sharded: want a parameter, a slot or a gradient, of static shape"
	case v.Sharded && !c.p.Values[v.State].Sharded || v.Class == plan.Slot && v.Sharded != c.p.Values[v.State].Sharded:
		return "is sharded where its parameter is not, or the other way round: want both alike"
	case v.Arena == 0:
		return ""
	case c.lasts(i) && !v.Once:
		return fmt.Sprintf("is a %v, which lasts over steps: it cannot be in an arena, of which each step in flight has its own", v.Class)
	case !v.Shape.Static():
		return fmt.Sprintf("is in an arena: its shape %v must be static", v.Shape)
	case v.Offset < 0 || v.Offset%arenaAlign != 0:
		return fmt.Sprintf("is at %d of its arena: want a multiple of %d, from 0", v.Offset, arenaAlign)
	}
	return ""
}

// arenaAlign is what the elements of every dtype are aligned to.
const arenaAlign = 8

// arenas proves that values placed in one arena do not overlap.
func (c *checker) arenas() {
	var placed []int
	for i := range c.p.Values {
		if c.p.Values[i].Arena != 0 {
			placed = append(placed, i)
		}
	}
	slices.SortStableFunc(placed, func(i, j int) int {
		a, b := &c.p.Values[i], &c.p.Values[j]
		return cmp.Or(cmp.Compare(a.Arena, b.Arena), cmp.Compare(a.Offset, b.Offset))
	})
	for n := 1; n < len(placed); n++ { // if any two overlap, so do neighbours
		a, b := &c.p.Values[placed[n-1]], &c.p.Values[placed[n]]
		if a.Arena == b.Arena && a.Once != b.Once {
			c.plan("value %d (%s) is in arena %d, where %s is %s: want all of an arena there once, or none",
				placed[n], b.Name, b.Arena, plan.Quote(a.Name), map[bool]string{true: "there once", false: "there once per step in flight"}[a.Once])
		}
		if a.Overlaps(b) { // which needs a proof of its own: see shared
			continue
		}
		if size := a.Bytes(); a.Arena == b.Arena && b.Offset-a.Offset < size {
			c.plan("value %d (%s) is at %d of arena %d, within the %d bytes of %s at %d: move it behind them",
				placed[n], b.Name, b.Offset, b.Arena, size, plan.Quote(a.Name), a.Offset)
		}
	}
}

func (c *checker) formHolding(i int, h *plan.Holding) {
	p := c.p
	if h.State < 0 || h.State >= len(p.Values) || !c.lasts(h.State) {
		c.plan("holding %d is of value %d, which is no parameter or slot", i, h.State)
		return
	}
	n := p.Values[h.State].Shape.Elems()
	if (h.Rank >= 0) == (h.Store >= 0) || h.Rank >= len(p.Ranks) || h.Store >= len(p.Stores) {
		c.plan("holding %d (%s): want a rank of the plan or a store of it, and -1 for the other", i, c.value(h.State))
	} else if h.Lo < 0 || h.Hi > n || h.Lo > h.Hi || h.Lo == h.Hi && !isTable(h) {
		c.plan("holding %d (%s): range %d..%d is not within its %d elements", i, c.value(h.State), h.Lo, h.Hi, n)
	}
}

// formOf is the lane of a task, and how many values go in and out: "2", or "2+"
// for two or more.
func formOf(t *plan.Task) (lane plan.Lane, in, out string) {
	switch t.Kind {
	case plan.Feed:
		return plan.Lane{Kind: plan.Reader, ID: t.Lane.ID}, "0", "1+"
	case plan.Compute:
		return plan.Lane{Kind: plan.Device, ID: t.Lane.ID}, "0+", "0+"
	case plan.Add:
		return plan.Lane{Kind: plan.Device, ID: t.Lane.ID}, "0+", "1+"
	case plan.Send:
		return plan.LinkLane(t.Peer, false), "1", "0"
	case plan.Recv:
		return plan.LinkLane(t.Peer, true), "0", "1"
	case plan.Collective:
		switch t.Op {
		case plan.AllGatherRows:
			if t.Order == plan.Tree {
				return plan.Lane{Kind: plan.Group, ID: t.Group}, "2+", "2"
			}
			return plan.Lane{Kind: plan.Group, ID: t.Group}, "2", "2"
		case plan.AllReduce, plan.ReduceScatter, plan.AllGather:
			return plan.Lane{Kind: plan.Group, ID: t.Group}, "1+", "1+"
		case plan.NoOp, plan.Broadcast:
		}
		return plan.Lane{Kind: plan.Group, ID: t.Group}, "1", "1"
	case plan.Commit:
		return plan.Lane{Kind: plan.Group, ID: t.Group}, "2+", "2"
	case plan.Pull:
		return plan.Lane{Kind: plan.Store, ID: t.Store}, "0+", "1+"
	case plan.Push:
		return plan.Lane{Kind: plan.Store, ID: t.Store}, "1+", "0"
	}
	return plan.Lane{}, "0", "0"
}

// fits reports whether n values are what formOf says.
func fits(n int, want string) bool {
	least := int(want[0] - '0')
	return n == least || n > least && want[1:] == "+"
}

// formTask proves that a task is well made in itself.
func (c *checker) formTask(rank, i int, t *plan.Task) {
	p := c.p
	bad := func(format string, args ...any) { c.task(rank, i, format, args...) }
	for _, d := range t.After {
		switch {
		case d.Task < 0 || d.Task >= len(p.Ranks[rank]) || d.Lag < 0:
			bad("waits for task %d~%d, which does not exist", d.Task, d.Lag)
		case d.Lag == 0 && d.Task >= i:
			bad("waits for task %d, which does not come before it: move it up, or wait for an earlier step (lag)", d.Task)
		}
	}
	for _, r := range slices.Concat(t.In, t.Out) {
		if r.Value < 0 || r.Value >= len(p.Values) || r.Micro < 0 || r.Use < 0 {
			bad("value %d@%d:%d does not exist", r.Value, r.Micro, r.Use)
			return
		}
		if p.Values[r.Value].Arena != 0 && (r.Micro != 0 || r.Use != 0) {
			bad("%s is in an arena, where it has one life a step: micro-batch %d, use %d must both be 0", c.value(r.Value), r.Micro, r.Use)
		}
	}
	lane, in, out := formOf(t)
	exists := func(what string, i, n int) {
		if i < 0 || i >= n {
			bad("%s %d does not exist: the plan has %d", what, i, n)
		}
	}
	switch t.Kind {
	case plan.Compute:
		exists("segment", t.Seg, len(p.Segs))
	case plan.Send, plan.Recv:
		if exists("rank", t.Peer, len(p.Ranks)); t.Peer == rank {
			bad("rank %d is no other rank", t.Peer)
		}
	case plan.Collective, plan.Commit:
		if t.Group < 0 || t.Group >= len(p.Groups) || !slices.Contains(p.Groups[t.Group], rank) {
			bad("group %d does not contain rank %d: add the rank, or drop the task", t.Group, rank)
		}
	case plan.Pull, plan.Push:
		exists("store", t.Store, len(p.Stores))
	case plan.Feed, plan.Add:
	default:
		bad("%v is no kind of task", t.Kind)
		return
	}
	if t.Lane != lane {
		bad("is on lane %v: want %v", t.Lane, lane)
	}
	if !fits(len(t.In), in) || !fits(len(t.Out), out) {
		bad("has %d values in and %d out: want %s in and %s out", len(t.In), len(t.Out), in, out)
		return
	}
	before := len(c.findings) + c.dropped
	if c.formOrder(place{rank, i}, bad); len(c.findings)+c.dropped == before {
		c.formFlow(place{rank, i}, bad)
	}
}

// alike proves that two values of a task have one type.
func (c *checker) alike(at place, a, b plan.Ref) {
	x, y := &c.p.Values[a.Value], &c.p.Values[b.Value]
	if x.DType != y.DType || len(x.Shape) != len(y.Shape) || x.Shape.Static() && y.Shape.Static() && !x.Shape.Equal(y.Shape) {
		c.task(at.rank, at.task, "%s is %v %v but %s is %v %v: they must be alike", plan.Quote(x.Name), x.DType, x.Shape, plan.Quote(y.Name), y.DType, y.Shape)
	}
}

// summable proves that a value can be added to another: they are alike, but that 16-bit
// floats add up in float32.
func (c *checker) summable(at place, a, b plan.Ref) {
	x, y := &c.p.Values[a.Value], &c.p.Values[b.Value]
	if (x.DType.IsHalf() && y.DType == tensor.F32 || y.DType.IsHalf() && x.DType == tensor.F32) && x.Shape.Equal(y.Shape) {
		return
	}
	c.alike(at, a, b)
}

// formFlow proves that what goes in fits what comes out.
func (c *checker) formFlow(at place, bad func(string, ...any)) {
	t := c.at(at)
	val := func(r plan.Ref) *plan.Value { return &c.p.Values[r.Value] }
	switch t.Kind {
	case plan.Add:
		n := len(t.Factors) - len(t.In)
		if n == 0 && len(t.In) == 0 || len(t.Factors) > 0 && (len(t.Out) != 1 || n != 0 && n != 1) {
			bad("adds %d values with %d factors: want none, or one each and perhaps a number to add, and one value out", len(t.In), len(t.Factors))
			return
		}
		if len(t.Out) > 2 || len(t.In)%len(t.Out) != 0 || len(t.Out) == 2 && val(t.Out[0]).Class != plan.Key {
			bad("want one value out, or (keys, rows) and such pairs in")
			return
		}
		for i, r := range t.In {
			out := t.Out[i%len(t.Out)]
			if c.summable(at, r, out); (val(r).Class == plan.Key) != (val(out).Class == plan.Key) {
				bad("adds %s to %s: keys go with keys, and rows with rows", c.value(r.Value), c.value(out.Value))
			}
			if len(t.Out) == 2 && slices.Contains(t.Out, r) {
				bad("rows cannot be added in place: write %s elsewhere", c.value(r.Value))
			}
		}
	case plan.Collective:
		c.formCollective(at, bad)
	case plan.Commit:
		for _, r := range slices.Concat(t.In[:2*c.p.Pairs(t)], t.Out) {
			if v := val(r); v.Class != plan.Scalar || v.Shape.Elems() != 1 {
				bad("%s must be a scalar: want (weight, loss, gradients...) in and (total weight, total loss) out", plan.Quote(v.Name))
			}
		}
	case plan.Pull:
		rows := len(t.Out) - len(t.In)
		for i, r := range t.Out {
			if v := val(r); rows < 0 || (i < rows) != (v.Class == plan.Param) || v.State == plan.NoState || i >= rows && val(t.In[i-rows]).Class != plan.Key {
				bad("%s: want parameters out first, then for each keys in the rows of a table", plan.Quote(v.Name))
				return
			}
		}
	case plan.Push:
		if _, err := c.pushedBy(t); err != nil {
			bad("%v", err)
		}
	case plan.Feed, plan.Compute, plan.Send, plan.Recv:
	}
}

// formHosts proves that each rank is on one host, if hosts are told.
func (c *checker) formHosts() {
	on := make(map[int]int)
	for h, ranks := range c.p.Hosts {
		if len(ranks) == 0 {
			c.plan("host %d has no ranks: drop it", h)
		}
		for _, r := range ranks {
			if other, twice := on[r]; twice {
				c.plan("rank %d is on host %d and on host %d: want each rank once", r, other, h)
			}
			on[r] = h
			if r < 0 || r >= len(c.p.Ranks) {
				c.plan("host %d: rank %d does not exist: the plan has %d", h, r, len(c.p.Ranks))
			}
		}
	}
	if n := len(on); n > 0 && n < len(c.p.Ranks) {
		c.plan("hosts name %d of %d ranks: want all", n, len(c.p.Ranks))
	}
}

// formCollective proves that a collective can sum or copy what it is given.
func (c *checker) formCollective(at place, bad func(string, ...any)) {
	t := c.at(at)
	if t.Op < plan.AllReduce || t.Op > plan.AllGatherRows {
		bad("%v is nothing that a collective does", t.Op)
	}
	if t.Op == plan.AllGatherRows {
		for k := 0; k < len(t.In); k += 2 {
			if c.p.Values[t.In[k].Value].Class != plan.Key || c.p.Values[t.Out[0].Value].Class != plan.Key {
				bad("want (keys, rows) in and out")
			}
		}
	}
	switch {
	case t.Algorithm > plan.ByExchange:
		bad("%v is nothing that an all-reduce is done by", t.Algorithm)
	case t.Algorithm != plan.ByRing && t.Op != plan.AllReduce:
		bad("%v is how an all-reduce is done, not %v", t.Algorithm, t.Op)
	case t.Algorithm == plan.ByHosts && len(c.p.Hosts) == 0:
		bad("hierarchical goes by hosts: tell the plan's hosts, or take another algorithm")
	}
	if t.Op == plan.AllReduce && t.Order == plan.Tree {
		c.formTree(t, bad)
		return
	}
	if t.Codec != "" {
		c.formCodec(at, bad)
	}
	if t.Op == plan.AllReduce && len(t.In)+len(t.Out) > 2 {
		if !slices.Equal(t.In, t.Out) {
			bad("of several values the sums go where the values are: want the same in and out")
		} else if _, _, err := c.p.Span(t.In); err != nil {
			bad("%v: what is summed together must be one run of an arena", err)
		}
		return
	}
	if t.Op == plan.ReduceScatter || t.Op == plan.AllGather { // these change the shape
		c.formSharded(at, bad)
		return
	}
	for i := range t.In {
		c.alike(at, t.In[i], t.Out[i%len(t.Out)])
	}
}

// formCodec proves that a collective can be compressed, and that somebody tells it of
// steps that change nothing: a Commit of its group, after it.
func (c *checker) formCodec(at place, bad func(string, ...any)) {
	t := c.at(at)
	if _, err := compress.ParseSpec(t.Codec); err != nil {
		bad("%v", err)
	}
	switch {
	case t.Op != plan.AllReduce:
		bad("%s is of an all-reduce, not of %v", t.Codec, t.Op)
	case t.Algorithm != plan.ByRing:
		bad("%s has a way of its own: leave the algorithm %v out", t.Codec, t.Algorithm)
	case !slices.Equal(t.In, t.Out):
		bad("%s sums where the values are: want the same in and out", t.Codec)
	}
	for _, r := range t.In {
		if v := &c.p.Values[r.Value]; v.DType != tensor.F32 || !v.Shape.Static() {
			bad("%s is %v %v: %s is of f32 of a known shape", plan.Quote(v.Name), v.DType, v.Shape, t.Codec)
		}
	}
	told := func(later plan.Task) bool { return later.Kind == plan.Commit && later.Group == t.Group }
	if !slices.ContainsFunc(c.p.Ranks[at.rank][at.task:], told) {
		bad("no commit of group %d comes after it: what %s loses in a step that is skipped could not be taken back", t.Group, t.Codec)
	}
}

// pushedBy lists the gradients that a Push gives, without their keys.
func (c *checker) pushedBy(t *plan.Task) (grads []plan.Ref, err error) {
	keys := false
	for _, r := range t.In {
		v := &c.p.Values[r.Value]
		switch {
		case v.Class == plan.Key && !keys:
			keys = true
			continue
		case v.Class != plan.Grad || v.State == plan.NoState:
			return nil, fmt.Errorf("%s is no gradient of a parameter", plan.Quote(v.Name))
		}
		keys = false
		grads = append(grads, r)
	}
	if keys {
		return nil, fmt.Errorf("the last keys have no rows after them")
	}
	return grads, nil
}

// tags proves that a tag tells the messages of a rank apart: those to one
// peer, those from it, and those to the stores.
func (c *checker) tags(rank int) {
	first := make(map[string]int) // by link, or store 0 for all stores, and tag
	for i := range c.p.Ranks[rank] {
		t := &c.p.Ranks[rank][i]
		var lanes []plan.Lane
		switch t.Kind {
		case plan.Send, plan.Recv:
			lanes = []plan.Lane{t.Lane}
		case plan.Collective, plan.Commit:
			for _, peer := range c.p.Groups[t.Group] {
				lanes = append(lanes, plan.LinkLane(peer, false), plan.LinkLane(peer, true))
			}
		case plan.Pull, plan.Push:
			lanes = []plan.Lane{{Kind: plan.Store}}
		case plan.Feed, plan.Compute, plan.Add:
		}
		for _, lane := range lanes {
			purpose := fmt.Sprint(lane, t.Tag)
			if before, taken := first[purpose]; taken {
				c.task(rank, i, "tag %d is taken by %s: give it a tag of its own", t.Tag, c.there(rank, before))
				break
			}
			first[purpose] = i
		}
	}
}

// holders proves that the owners of every state cover it once: its elements, or
// for a table on the stores all of them.
func (c *checker) holders() {
	for v := range c.p.Values {
		if !c.lasts(v) {
			continue
		}
		c.ownAlike(v)
		var ranges, rows [][2]int
		for i := range c.p.Holdings {
			h := &c.p.Holdings[i]
			switch {
			case h.State != v || !h.Owner:
			case isTable(h):
				rows = append(rows, [2]int{h.Store, h.Store + 1})
			default:
				ranges = append(ranges, [2]int{h.Lo, h.Hi})
			}
		}
		if len(rows) == 0 {
			c.cover(v, "elements", ranges, c.p.Values[v].Shape.Elems())
			continue
		}
		c.cover(v, "the rows on stores", rows, len(c.p.Stores))
		if len(ranges) > 0 {
			c.plan("%s is held by rows and by ranges: hold it one way", c.value(v))
		}
	}
}

// cover reports the first gap or overlap of ranges that should fill [0, n).
func (c *checker) cover(v int, what string, ranges [][2]int, n int) {
	slices.SortFunc(ranges, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	at := 0
	for _, r := range append(ranges, [2]int{n, n}) {
		switch lo := r[0]; {
		case lo > at:
			c.plan("nobody owns %s %d..%d of %s: give them a holding", what, at, lo, c.value(v))
			return
		case lo < at:
			c.plan("%s %d..%d of %s have two owners: make one of them a copy", what, lo, min(at, r[1]), c.value(v))
			return
		}
		at = r[1]
	}
}
