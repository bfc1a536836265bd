package collective_test

import (
	"errors"
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"github.com/gangline/gangline/collective"
)

// nMax is the largest group for which schedules are proved.
const nMax = 64

func generators() map[string]func(int) *collective.Schedule {
	return map[string]func(int) *collective.Schedule{
		"ring all-reduce":     collective.RingAllReduce,
		"ring reduce-scatter": collective.RingReduceScatter,
		"ring all-gather":     collective.RingAllGather,
		"pairwise all-gather": collective.PairwiseAllGather,
		"binomial broadcast":  collective.BinomialBroadcast,
		"binomial reduce":     collective.BinomialReduce,
		"binomial gather":     collective.BinomialGather,
		"binomial scatter":    collective.BinomialScatter,
		"halving all-reduce":  collective.HalvingAllReduce,
		"doubling all-reduce": collective.DoublingAllReduce,
		"tree all-reduce":     collective.TreeAllReduce,
		"hosts of 2":          func(n int) *collective.Schedule { return onHosts(n, 2) },
		"hosts of 3 and less": func(n int) *collective.Schedule { return onHosts(n, 3) },
		"one host":            func(n int) *collective.Schedule { return onHosts(n, n) },
	}
}

// onHosts is a hierarchical all-reduce over hosts of m ranks, the last of the rest.
// Neighbours are on different hosts.
func onHosts(n, m int) *collective.Schedule {
	hosts := make([][]int, (n+m-1)/m)
	for i := range n {
		hosts[i%len(hosts)] = append(hosts[i%len(hosts)], i)
	}
	s, err := collective.HierarchicalAllReduce(hosts)
	if err != nil {
		panic(err)
	}
	return s
}

// Every schedule ends, and leaves each rank each contribution exactly once: by
// running it on symbols for every n.
func TestSchedulesAreProved(t *testing.T) {
	all := generators()
	all["pairwise all-to-all"], all["dissemination barrier"] = collective.PairwiseAllToAll, collective.DisseminationBarrier
	for name, gen := range all {
		for n := 1; n <= nMax; n++ {
			if err := gen(n).Check(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Check is worth nothing unless it refuses: each edit of a right schedule makes
// a wrong one.
func TestCheckRefuses(t *testing.T) {
	edits := map[string]func(*collective.Schedule){
		"a step missing":       func(s *collective.Schedule) { s.Ranks[1] = s.Ranks[1][1:] },
		"copy instead of sum":  func(s *collective.Schedule) { s.Ranks[2][0].Action = collective.Copy },
		"sum instead of copy":  func(s *collective.Schedule) { s.Ranks[2][4].Action = collective.Add },
		"another chunk":        func(s *collective.Schedule) { s.Ranks[0][1].Send = collective.Range{Lo: 0, Hi: 1} },
		"to itself":            func(s *collective.Schedule) { s.Ranks[0][0].To = 0 },
		"nobody to receive":    func(s *collective.Schedule) { s.Ranks[0][0].From = collective.Nobody },
		"outside":              func(s *collective.Schedule) { s.Ranks[0][0].Send.Hi = 9 },
		"sends what it writes": func(s *collective.Schedule) { s.Ranks[0][0].Recv = s.Ranks[0][0].Send },
		"a list too few":       func(s *collective.Schedule) { s.Ranks = s.Ranks[1:] },
		"adds to more than it sends": func(s *collective.Schedule) {
			s.Ranks[0][0].Send, s.Ranks[0][0].Recv = collective.Range{Lo: 1, Hi: 3}, collective.Range{Lo: 1, Hi: 2}
		},
		"an extra message": func(s *collective.Schedule) {
			s.Ranks[0] = append(s.Ranks[0], collective.Step{To: 1, Send: collective.Range{Lo: 0, Hi: 1}, From: collective.Nobody})
		},
		"order turned round": func(s *collective.Schedule) {
			r := s.Ranks[3]
			r[0], r[1] = r[1], r[0]
		},
	}
	for name, edit := range edits {
		s := collective.RingAllReduce(4)
		edit(s)
		if err := s.Check(); !errors.Is(err, collective.ErrSchedule) {
			t.Errorf("%s: Check said %v", name, err)
		}
	}
}

// Check refuses an all-to-all that gives a rank what is for another, or puts it in
// another's place, and a barrier that does not hear of all.
func TestCheckRefusesOthers(t *testing.T) {
	s := collective.PairwiseAllToAll(4)
	s.Ranks[0][1].Send = collective.Range{Lo: 1, Hi: 2}
	if err := s.Check(); !errors.Is(err, collective.ErrSchedule) {
		t.Errorf("for another: %v", err)
	}
	s = collective.PairwiseAllToAll(4)
	s.Ranks[0][1].Recv = collective.Range{Lo: 5, Hi: 6}
	if err := s.Check(); !errors.Is(err, collective.ErrSchedule) {
		t.Errorf("in another's place: %v", err)
	}
	s = collective.PairwiseAllToAll(4)
	for i := range s.Ranks {
		s.Ranks[i] = s.Ranks[i][:2]
	}
	if err := s.Check(); !errors.Is(err, collective.ErrSchedule) {
		t.Errorf("a step missing: %v", err)
	}
	s = collective.DisseminationBarrier(5)
	for i := range s.Ranks {
		s.Ranks[i] = s.Ranks[i][:2]
	}
	if err := s.Check(); !errors.Is(err, collective.ErrSchedule) {
		t.Errorf("a barrier of two steps: %v", err)
	}
}

// The formulas of what has a root, of all-to-alls and of barriers.
func TestTrafficOfOthers(t *testing.T) {
	const size = 4
	for n := 1; n <= nMax; n++ {
		rounds := bits.Len(uint(n - 1))
		gather, scatter, reduce := collective.BinomialGather(n), collective.BinomialScatter(n), collective.BinomialReduce(n)
		barrier, pairs := collective.DisseminationBarrier(n), collective.PairwiseAllToAll(n)
		for _, elems := range []int{0, 1, n + 1, 1000} {
			total := int64(elems * size)
			for i := range n {
				top := n // of the chunks that rank i passes on
				if i > 0 {
					top = min(n, i+i&-i)
				}
				at := func(c int) int64 { return int64(collective.Bound(c, n, elems)) * size }
				own, all := at(i+1)-at(i), at(top)-at(i)
				want := func(name string, s *collective.Schedule, sent, received int64) {
					if gotSent, gotReceived := s.Traffic(i, elems, size); gotSent != sent || gotReceived != received {
						t.Errorf("%s n=%d rank %d elems=%d: %d/%d bytes, want %d/%d", name, n, i, elems, gotSent, gotReceived, sent, received)
					}
				}
				up := all
				if i == 0 {
					up = 0
				}
				want("gather", gather, up, all-own)
				want("scatter", scatter, all-own, up)
				if sent, _ := reduce.Traffic(i, elems, size); sent != total*int64(min(i, 1)) {
					t.Errorf("reduce n=%d rank %d sends %d of %d", n, i, sent, total)
				}
			}
		}
		for i := range n {
			if sent, received := barrier.Traffic(i, 1, size); sent != int64(size*rounds) || received != sent || len(barrier.Ranks[i]) != rounds {
				t.Errorf("barrier n=%d rank %d: %d/%d bytes in %d steps", n, i, sent, received, len(barrier.Ranks[i]))
			}
			// 2n chunks of 3 elements.
			if sent, received := pairs.Traffic(i, 6*n, size); sent != int64(3*size*(n-1)) || received != sent || len(pairs.Ranks[i]) != n-1 {
				t.Errorf("all-to-all n=%d rank %d: %d/%d bytes in %d steps", n, i, sent, received, len(pairs.Ranks[i]))
			}
		}
	}
}

// The formulas of the package comment against the schedules themselves.
func TestTrafficFollowsTheFormulas(t *testing.T) {
	for n := 2; n <= nMax; n++ {
		scatter, gather, reduce := collective.RingReduceScatter(n), collective.RingAllGather(n), collective.RingAllReduce(n)
		pairs, b := collective.PairwiseAllGather(n), collective.BinomialBroadcast(n)
		for _, elems := range []int{0, 1, n - 1, n, 1000} {
			const size = 4
			total := int64(elems * size)
			chunk := func(c int) int64 {
				c = (c + n) % n
				return int64(collective.Bound(c+1, n, elems)-collective.Bound(c, n, elems)) * size
			}
			var down int64
			for i := range n {
				want := func(name string, s *collective.Schedule, steps int, sent, received int64) {
					gotSent, gotReceived := s.Traffic(i, elems, size)
					if len(s.Ranks[i]) != steps || gotSent != sent || gotReceived != received {
						t.Errorf("%s n=%d rank %d elems=%d: %d steps %d/%d bytes, want %d steps %d/%d",
							name, n, i, elems, len(s.Ranks[i]), gotSent, gotReceived, steps, sent, received)
					}
				}
				want("reduce-scatter", scatter, n-1, total-chunk(i), total-chunk(i-1))
				want("all-gather", gather, n-1, total-chunk(i+1), total-chunk(i))
				want("pairwise all-gather", pairs, n-1, int64(n-1)*chunk(i), total-chunk(i))
				want("all-reduce", reduce, 2*(n-1),
					2*total-chunk(i)-chunk(i+1), 2*total-chunk(i)-chunk(i-1))
				sent, received := b.Traffic(i, elems, size)
				down += sent
				if i > 0 && received != total || i == 0 && received != 0 {
					t.Errorf("broadcast n=%d rank %d received %d of %d", n, i, received, total)
				}
			}
			if root := len(b.Ranks[0]); root != bits.Len(uint(n-1)) {
				t.Errorf("broadcast n=%d takes %d rounds", n, root)
			}
			if down != total*int64(n-1) {
				t.Errorf("broadcast n=%d sends %d in all", n, down)
			}
		}
	}
}

// The formulas of all-reduces other than the ring, for buffers that all chunks of
// it cut evenly.
func TestTrafficOfAllReduces(t *testing.T) {
	for n := 1; n <= nMax; n++ {
		p := 1 << (bits.Len(uint(n)) - 1)
		rounds, elems := bits.Len(uint(p))-1, p*6
		const size = 4
		whole := int64(elems * size)
		halving, doubling, tree := collective.HalvingAllReduce(n), collective.DoublingAllReduce(n), collective.TreeAllReduce(n)
		var inTree, longest int64
		for i := range n {
			fold, steps := int64(0), 0
			if i < n-p || i >= p {
				fold, steps = whole, 2 // each end of a fold sends once and receives once
			}
			h, d := 2*whole*int64(p-1)/int64(p)+fold, whole*int64(rounds)+fold
			hSteps, dSteps := 2*rounds+steps, rounds+steps
			if i >= p {
				h, d, hSteps, dSteps = whole, whole, 2, 2
			}
			if sent, received := halving.Traffic(i, elems, size); sent != h || received != h || len(halving.Ranks[i]) != hSteps {
				t.Errorf("halving n=%d rank %d: %d/%d bytes in %d steps, want %d in %d", n, i, sent, received, len(halving.Ranks[i]), h, hSteps)
			}
			if sent, received := doubling.Traffic(i, elems, size); sent != d || received != d || len(doubling.Ranks[i]) != dSteps {
				t.Errorf("doubling n=%d rank %d: %d/%d bytes in %d steps, want %d in %d", n, i, sent, received, len(doubling.Ranks[i]), d, dSteps)
			}
			sent, _ := tree.Traffic(i, elems, size)
			inTree += sent
			longest = max(longest, int64(len(tree.Ranks[i])))
		}
		if inTree != 2*int64(n-1)*whole || longest != 2*int64(bits.Len(uint(n-1))) {
			t.Errorf("tree n=%d: %d bytes in %d steps", n, inTree, longest)
		}
	}
}

// Between hosts a hierarchical all-reduce sends what a ring of one rank a host does,
// and nothing else.
func TestTrafficBetweenHosts(t *testing.T) {
	hosts := [][]int{{0, 5, 6}, {1, 3}, {4, 2, 7, 8}}
	s, err := collective.HierarchicalAllReduce(hosts)
	if err != nil {
		t.Fatal(err)
	}
	host := map[int]int{}
	for k, h := range hosts {
		for _, i := range h {
			host[i] = k
		}
	}
	const elems, size = 999, 4
	between := make([]int64, len(hosts))
	for i, steps := range s.Ranks {
		for _, st := range steps {
			if st.To != collective.Nobody && host[st.To] != host[i] {
				between[host[i]] += size * int64(collective.Bound(st.Send.Hi, s.Chunks, elems)-collective.Bound(st.Send.Lo, s.Chunks, elems))
			}
		}
	}
	for k, sent := range between {
		if sent != 2*elems*size*2/3 {
			t.Errorf("host %d sends %d bytes to others, want %d", k, sent, 2*elems*size*2/3)
		}
	}
	for _, bad := range [][][]int{{}, {{0}, {}}, {{0, 0}}, {{0, 2}}, {{-1, 0}}} {
		if _, err := collective.HierarchicalAllReduce(bad); err == nil {
			t.Errorf("hosts %v are taken", bad)
		}
	}
}

// Chunks tile the buffer and differ by at most one element, also where the
// plain product would overflow.
func TestBoundTiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, nMax).Draw(t, "chunks")
		elems := rapid.IntRange(0, 1<<62).Draw(t, "elems")
		if collective.Bound(0, n, elems) != 0 || collective.Bound(n, n, elems) != elems {
			t.Fatal("ends")
		}
		for c := range n {
			w := collective.Bound(c+1, n, elems) - collective.Bound(c, n, elems)
			if w < elems/n || w > elems/n+1 {
				t.Fatalf("chunk %d has %d of %d in %d", c, w, elems, n)
			}
		}
	})
}
