package native

import (
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/native/internal/team"
)

// grain is how many units of work, of about half a nanosecond, are worth a
// part of their own.
const grain = 1 << 14

// loop is a kernel that computes a number of things, each alone: elements, rows,
// columns, images. The team takes runs of them.
type loop struct {
	team     *team.Team
	call     *compute.Call
	n, chunk int
	columns  bool // in few parts, since each passes over all rows
	few      bool // no more parts than threads, since each passes over all entries
	body     func(c *compute.Call, lo, hi, worker int)
}

// Part computes one run of things.
func (l *loop) Part(i, worker int) {
	l.body(l.call, i*l.chunk, min(l.n, (i+1)*l.chunk), worker)
}

// columnStrip is how many columns of a matrix are worth a part of their own.
const columnStrip = 64

// spread runs the body over n things of a cost in units of work each.
func (l *loop) spread(c *compute.Call, n, cost int) {
	if n == 0 {
		return
	}
	parts := 1
	if l.team.Size() > 1 {
		parts = max(1, min(4*l.team.Size(), n, n*max(1, cost)/grain))
		if l.few {
			parts = min(parts, l.team.Size())
		}
		if l.columns {
			parts = min(parts, l.team.Size(), max(1, n/columnStrip))
		}
	}
	l.call, l.n = c, n
	l.chunk = (n + parts - 1) / parts
	if l.chunk > 64 {
		l.chunk = (l.chunk + 63) &^ 63 // elements: whole vectors and cache lines
	}
	l.team.Spread((n+l.chunk-1)/l.chunk, l)
	l.call = nil
}

// each makes a kernel of a body over the elements of the result.
func (b *builder[T]) each(cost int, body func(c *compute.Call, lo, hi, worker int)) compute.Kernel {
	l := &loop{team: b.team, body: body}
	return func(c *compute.Call) error {
		l.spread(c, c.Out.Elems(), cost)
		return nil
	}
}

// eachOf makes a kernel of a body over what count counts, each of a cost.
func (b *builder[T]) eachOf(count func(c *compute.Call) (n, cost int), body func(c *compute.Call, lo, hi, worker int)) compute.Kernel {
	l := &loop{team: b.team, body: body}
	return func(c *compute.Call) error {
		n, cost := count(c)
		l.spread(c, n, cost)
		return nil
	}
}

// eachColumn is eachOf for columns of a matrix, which are cut into few parts.
func (b *builder[T]) eachColumn(count func(c *compute.Call) (n, cost int), body func(c *compute.Call, lo, hi, worker int)) compute.Kernel {
	l := &loop{team: b.team, body: body, columns: true}
	return func(c *compute.Call) error {
		n, cost := count(c)
		l.spread(c, n, cost)
		return nil
	}
}

// eachRow makes a kernel of a body over the rows, along the last dim, of
// input k, at a cost an element.
func (b *builder[T]) eachRow(k, cost int, body func(c *compute.Call, lo, hi, worker int)) compute.Kernel {
	return b.eachOf(func(c *compute.Call) (int, int) {
		s := c.In[k].Shape()
		return s[:len(s)-1].Elems(), cost * s[len(s)-1]
	}, body)
}
