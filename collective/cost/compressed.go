package cost

import (
	"fmt"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/plan"
)

// coding is the seconds that a core takes to encode an element and to decode it, about,
// whatever the codec: package compress, whose benchmarks this is of, is in plain Go.
const coding = 10e-9

// Compressed is what an all-reduce by a codec costs.
type Compressed struct {
	// Plain is the bytes of the values, without gaps between them; Coded what all of them
	// are by the codec.
	Plain, Coded int
	// Seconds until the last rank has ended, if all begin at once.
	Seconds float64
}

// CompressedSum foretells an all-reduce that has a codec, on a machine whose hosts are those of
// the plan. With E the bytes of a vector by the
// codec, cut into one part a rank, every rank sends 2 (n-1) E/n; on one path that is
//
//	2(n-1) alpha + 2 E(n-1)/n beta, and 10 ns for every element
//
// and where n ranks of a host send to others at a time, each takes n times beta. PowerSGD is
// two rings, of both factors (compress.Factors).
func CompressedSum(p *plan.Plan, t *plan.Task, m Machine) (Compressed, error) {
	spec, err := compress.ParseSpec(t.Codec)
	if err != nil {
		return Compressed{}, err
	}
	var lo []int
	var shapes [][]int
	elems, n := 0, len(p.Groups[t.Group])
	m.Hosts = p.HostsOf(p.Groups[t.Group])
	for _, r := range t.In {
		v := &p.Values[r.Value]
		lo, shapes = append(lo, elems), append(shapes, v.Shape)
		elems += v.Shape.Elems()
	}
	c := Compressed{Plain: 4 * elems, Seconds: coding * float64(elems)}
	if spec.Kind == compress.KindPowerSGD {
		a, b := compress.Factors(elems, spec.Rank, compress.Layers(lo, shapes))
		ring := collective.RingAllReduce(n)
		c.Coded = 4 * (a + b)
		c.Seconds += Time(ring, 4*a, m) + Time(ring, 4*b, m)
		return c, nil
	}
	codec, err := spec.Codec()
	if err != nil {
		return Compressed{}, err
	}
	parts := make([]int, n)
	for j := range parts {
		parts[j] = codec.Bytes(collective.Bound(j+1, n, elems) - collective.Bound(j, n, elems))
		c.Coded += parts[j]
	}
	c.Seconds += m.exchange(parts)
	return c, nil
}

// exchange is the time of the two rounds of a compressed sum: in the first, a rank sends
// each other one its part, in the second all others the sum of its own.
func (m *Machine) exchange(parts []int) float64 {
	n := len(parts)
	link, host, crowd := m.links(n), make([]int, n), make([]float64, n)
	for h, ranks := range m.Hosts {
		for _, i := range ranks {
			host[i], crowd[i] = h, float64(len(ranks))
		}
	}
	var rounds [2]float64
	for i := range n {
		var sent [2]float64
		for j := range n {
			if j == i {
				continue
			}
			l, share := link(i, j), 1.
			if host[i] != host[j] {
				share = crowd[i]
			}
			sent[0] += l.Alpha + float64(parts[j])*l.Beta*share
			sent[1] += l.Alpha + float64(parts[i])*l.Beta*share
		}
		rounds[0], rounds[1] = max(rounds[0], sent[0]), max(rounds[1], sent[1])
	}
	return rounds[0] + rounds[1]
}

// text says what compression does to a task.
func (c Compressed) text(codec string) string {
	part := 1.
	if c.Plain > 0 {
		part = float64(c.Coded) / float64(c.Plain)
	}
	return fmt.Sprintf("%s: %d bytes, %.1f %%, %.3f ms", codec, c.Coded, 100*part, c.Seconds*1e3)
}
