package comm

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gangline/gangline/collective/cost"
)

// Costs makes the file that network.costs reads, of the paths that have a fit, with what
// they were measured on. It is an error if no path has one.
func (p Probe) Costs(all []Probed) ([]byte, error) {
	table := cost.Default()
	var which []cost.Path
	var why, on []string
	for _, d := range all {
		switch {
		case d.Skipped != "":
			why = append(why, d.Path+": "+d.Skipped)
		case d.NoFit != "":
			why = append(why, d.Path+": "+d.NoFit)
		default:
			path := d.machine().Local
			table[path] = d.Link
			which = append(which, path)
			on = append(on, fmt.Sprintf("%s between %d ranks on %s", d.Path, d.Ranks, plural(d.Hosts, "host")))
		}
	}
	if len(which) == 0 {
		return nil, fmt.Errorf("no costs were measured: %s", strings.Join(why, "; "))
	}
	sizes := p.messages()
	note := fmt.Sprintf("%s; %s, %s/%s; messages of %d to %d bytes", strings.Join(on, ", "),
		plural(runtime.NumCPU(), "core"), runtime.GOOS, runtime.GOARCH, sizes[0], sizes[len(sizes)-1])
	return table.Encode(note, which...)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Say writes what was measured: the costs, and how well they foretell all-reduces.
func Say(all []Probed) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "path\tranks\thosts\tmessage µs\tbyte ns\tGB/s\tadded byte ns\toff %\tmost %\t")
	for _, p := range all {
		if p.Skipped == "" && p.NoFit == "" {
			fmt.Fprintf(w, "%s\t%d\t%d\t%.2f\t%.4f\t%.2f\t%.4f\t%.0f\t%.0f\t\n", p.Path, p.Ranks, p.Hosts,
				1e6*p.Alpha, 1e9*p.Beta, 1e-9/p.Beta, 1e9*p.Gamma, 100*p.Off, 100*p.OffMost)
		}
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "path\tall-reduce\tbytes\tmeasured µs\tmodelled µs\tratio\t")
	for _, p := range all {
		for _, c := range p.Checks {
			fmt.Fprintf(w, "%s\t%s\t%d\t%.1f\t%.1f\t%.2f\t\n", p.Path, c.Algorithm, c.Bytes, c.Measured, c.Modelled, c.Modelled/c.Measured)
		}
	}
	_ = w.Flush() // to memory
	b.WriteByte('\n')
	for _, p := range all {
		fmt.Fprintf(&b, "%s: %s\n", p.Path, p.verdict())
	}
	return b.String()
}

// verdict says in a sentence how good the costs are.
func (p *Probed) verdict() string {
	switch {
	case p.Skipped != "":
		return "not measured: " + p.Skipped
	case p.NoFit != "":
		return "not saved: " + p.NoFit
	}
	middle, most := p.off()
	right, sizes, loss := p.choices()
	return fmt.Sprintf("the model is off by a factor of %.2f in the middle, %.2f at most; its choice is the fastest at %d of %d sizes, at worst %.0f %% slower than that",
		middle, most, right, sizes, 100*loss)
}

// off is by what factor the model is off, median and most.
func (p *Probed) off() (middle, most float64) {
	var all []float64
	for _, c := range p.Checks {
		all = append(all, math.Exp(math.Abs(math.Log(c.Modelled/c.Measured))))
	}
	if len(all) == 0 {
		return 1, 1
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)-1]
}

// choices counts at how many sizes the algorithm that the model takes was the fastest,
// and how much longer than that one it took at worst, as a share.
func (p *Probed) choices() (right, sizes int, loss float64) {
	chosen, best := map[int]Check{}, map[int]Check{}
	for _, c := range p.Checks {
		if have, ok := chosen[c.Bytes]; !ok || c.Modelled < have.Modelled*(1-1e-9) {
			chosen[c.Bytes] = c
		}
		if have, ok := best[c.Bytes]; !ok || c.Measured < have.Measured {
			best[c.Bytes] = c
		}
	}
	for bytes, c := range chosen {
		if c.Algorithm == best[bytes].Algorithm {
			right++
		}
		loss = max(loss, c.Measured/best[bytes].Measured-1)
	}
	return right, len(chosen), loss
}
