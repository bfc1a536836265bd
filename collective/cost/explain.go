package cost

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/gangline/gangline/plan"
)

// Explain writes, for each collective of rank 0, by which algorithm it is done and
// why: what each would take on a machine, whose hosts are those of the plan; of one that is
// compressed, what its bytes become.
func Explain(w io.Writer, p *plan.Plan, m Machine) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	choosers := make(map[int]*Chooser)
	for i := range p.Ranks[0] {
		task := &p.Ranks[0][i]
		if task.Kind != plan.Collective && task.Kind != plan.Commit {
			continue
		}
		group := p.Groups[task.Group]
		hosts := p.HostsOf(group)
		who := plural(len(group), "rank") + " on " + plural(len(hosts), "host")
		if task.Op != plan.AllReduce || task.Order == plan.Tree {
			fmt.Fprintf(t, "%s %s\t%s\t\t%s\n", task.Verb(), plan.Quote(task.Name), who, only(task))
			continue
		}
		if task.Codec != "" {
			c, err := CompressedSum(p, task, m)
			if err != nil {
				return err
			}
			fmt.Fprintf(t, "%s %s\t%s\t%d bytes\t%s\n", task.Verb(), plan.Quote(task.Name), who, c.Plain, c.text(task.Codec))
			continue
		}
		if choosers[task.Group] == nil {
			m.Hosts = hosts
			c, err := NewChooser(len(group), m)
			if err != nil {
				return err
			}
			choosers[task.Group] = c
		}
		n := Bytes(p, task)
		fmt.Fprintf(t, "%s %s\t%s\t%d bytes\t%v: %s\n", task.Verb(), plan.Quote(task.Name), who, n, task.Algorithm,
			why(choosers[task.Group].Choices(n)))
	}
	return t.Flush()
}

// only says how a collective is done that can be done in one way.
func only(t *plan.Task) string {
	switch {
	case t.Op == plan.AllReduce && t.Algorithm == plan.ByExchange:
		return "exchange: all branches to all ranks, which end the one tree over all slices"
	case t.Op == plan.AllReduce:
		return "ring: chunks of branches to their ranks, which end the one tree over all slices, and sums to all"
	case t.Op == plan.AllGatherRows && t.Order == plan.Tree:
		return "each to all at once: rows are summed in the order of the slices"
	case t.Kind == plan.Commit:
		return "each to all at once: some bytes"
	case t.Op == plan.Broadcast:
		return "binomial tree"
	case t.Op == plan.AllGatherRows:
		return "ring: as many bytes as the batch has rows"
	}
	return "ring"
}

// why lists what algorithms take, the fastest first.
func why(all []Choice) string {
	var parts []string
	for _, c := range all {
		parts = append(parts, fmt.Sprintf("%v %.3f ms", c.Algorithm, c.Seconds*1e3))
	}
	return strings.Join(parts, ", ")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Bytes is what an all-reduce sums: all of its values, and the gaps between them.
func Bytes(p *plan.Plan, t *plan.Task) int {
	if lo, hi, err := p.Span(t.In); err == nil {
		return hi - lo
	}
	return p.Values[t.In[0].Value].Bytes()
}
