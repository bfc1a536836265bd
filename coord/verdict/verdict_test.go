package verdict

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// machine runs programs of ranks that wait in every call until all members are there.
type machine struct {
	groups   [][]int
	programs [][]int // by rank: the groups on which it calls, in order
	at       []int   // by rank: calls that it has ended
	stops    []int   // by rank: before which call it stops; -1: never
}

// open returns the group on which a rank waits, false if it waits in none.
func (m *machine) open(rank int) (int, bool) {
	if m.at[rank] == len(m.programs[rank]) || m.at[rank] == m.stops[rank] {
		return 0, false
	}
	return m.programs[rank][m.at[rank]], true
}

// ended counts the calls on a group that a rank has ended.
func (m *machine) ended(rank, group int) int {
	n := 0
	for _, g := range m.programs[rank][:m.at[rank]] {
		if g == group {
			n++
		}
	}
	return n
}

// run goes on until nothing moves.
func (m *machine) run() {
	for moved := true; moved; {
		moved = false
		for g, members := range m.groups {
			there := func(rank int) bool {
				at, waits := m.open(rank)
				return waits && at == g && m.ended(rank, g) == m.ended(members[0], g)
			}
			if !slices.ContainsFunc(members, func(r int) bool { return !there(r) }) {
				for _, r := range members {
					m.at[r]++
				}
				moved = true
			}
		}
	}
}

// evidence is what all ranks say, but for those that are silent.
func (m *machine) evidence(reporter int, silent map[int]bool) *Evidence {
	e := &Evidence{Age: time.Minute}
	for rank := range m.programs {
		r := Rank{Name: fmt.Sprintf("rank %d", rank), Answered: !silent[rank], Heard: time.Second}
		waitsOn, waits := m.open(rank)
		for g, members := range m.groups {
			if silent[rank] || !slices.Contains(members, rank) {
				continue
			}
			c := Call{Group: fmt.Sprint(members), Members: members, What: "barrier", Sequence: uint64(m.ended(rank, g)), Since: time.Second}
			if waits && waitsOn == g {
				c.Open, c.Waited = true, true
				c.Sequence++
				if rank == reporter {
					e.First = Report{Rank: rank, Peer: NoRank, Kind: Overdue, Group: c.Group, Text: "late"}
				}
			}
			r.Calls = append(r.Calls, c)
		}
		e.Ranks = append(e.Ranks, r)
	}
	return e
}

// newMachine draws groups and a common order of calls, of which every rank makes those
// that it is a member of.
func newMachine(rng *rand.Rand) *machine {
	n := 2 + rng.IntN(5)
	m := &machine{at: make([]int, n), programs: make([][]int, n), stops: make([]int, n)}
	for range 1 + rng.IntN(4) {
		members := rng.Perm(n)[:1+rng.IntN(n)]
		slices.Sort(members)
		if !slices.ContainsFunc(m.groups, func(g []int) bool { return slices.Equal(g, members) }) {
			m.groups = append(m.groups, members)
		}
	}
	for range 1 + rng.IntN(12) {
		g := rng.IntN(len(m.groups))
		for _, rank := range m.groups[g] {
			m.programs[rank] = append(m.programs[rank], g)
		}
	}
	for rank := range m.stops {
		m.stops[rank] = -1
	}
	return m
}

// TestOneStops is a proof by trial that groups which share ranks do not hide who is to
// blame: one rank stops before any of its calls, silent or not; whoever reports, it is the
// one that is missing, and no other. Without one that stops, a common order of the
// calls lets all end.
func TestOneStops(t *testing.T) {
	stuck := 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := newMachine(rng)
		free := &machine{groups: m.groups, programs: m.programs, at: make([]int, len(m.at)), stops: m.stops}
		free.run()
		for rank := range free.at {
			if free.at[rank] != len(m.programs[rank]) {
				t.Fatalf("seed %d: rank %d hangs in call %d though the order is common", seed, rank, free.at[rank])
			}
		}
		victim := rng.IntN(len(m.at))
		if len(m.programs[victim]) == 0 {
			continue
		}
		m.stops[victim] = rng.IntN(len(m.programs[victim]))
		silent := map[int]bool{victim: rng.IntN(2) == 0}
		m.run()
		for reporter := range m.at {
			if _, waits := m.open(reporter); !waits {
				continue
			}
			stuck++
			v := m.evidence(reporter, silent).Judge()
			if v.Rank != victim || v.Kind != Overdue || len(v.Missing) != 1 || v.Missing[0].Rank != victim || strings.Contains(v.Text, "wait for each other") {
				t.Fatalf("seed %d: rank %d stops, rank %d reports: %+v", seed, victim, reporter, v)
			}
		}
	}
	if stuck < 1000 {
		t.Errorf("only %d reports", stuck)
	}
}

// TestCircle is that ranks which wait for each other, because every one makes its calls
// in another order, are told so, and nobody else is blamed.
func TestCircle(t *testing.T) {
	circles := 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		m := newMachine(rng)
		for _, p := range m.programs {
			rng.Shuffle(len(p), func(i, k int) { p[i], p[k] = p[k], p[i] })
		}
		m.run()
		for reporter := range m.at {
			if _, waits := m.open(reporter); !waits {
				continue
			}
			v := m.evidence(reporter, nil).Judge()
			if v.Kind != Overdue || len(v.Missing) == 0 {
				t.Fatalf("seed %d, rank %d reports: %+v", seed, reporter, v)
			}
			ended := false // some rank has ended its program, and is missed for that
			for _, missing := range v.Missing {
				_, waits := m.open(missing.Rank)
				ended = ended || !waits
			}
			if circle := strings.Contains(v.Text, "wait for each other"); !circle && !ended {
				t.Fatalf("seed %d, rank %d reports: no circle and nobody absent: %+v", seed, reporter, v)
			}
			circles++
		}
	}
	if circles < 1000 {
		t.Errorf("only %d reports", circles)
	}
}

// A call to which all came, late, is not the fault of who was late, if there is a rank that
// does not answer at all, also if it is no member.
func TestQuietElsewhere(t *testing.T) {
	call := Call{Group: "0,1", Members: []int{0, 1}, Sequence: 2, Open: true, Waited: true, What: "barrier"}
	e := &Evidence{
		First: Report{Rank: 1, Peer: NoRank, Kind: Overdue, Group: call.Group, Text: "late"},
		Ranks: []Rank{
			{Name: "rank 0", Answered: true, Calls: []Call{call}},
			{Name: "rank 1", Answered: true, Calls: []Call{call}},
			{Name: "rank 2", Answered: true},
			{Name: "rank 3", Heard: 2 * time.Second},
		},
	}
	if v := e.Judge(); v.Rank != 3 || len(v.Missing) != 1 || v.Missing[0].Silent != 2*time.Second || !strings.Contains(v.Text, "rank 3 does not answer, silent for 2s") {
		t.Errorf("%+v", v)
	}
	e.Ranks[3].Answered = true
	if v := e.Judge(); v.Rank > 1 || !strings.Contains(v.Text, "came") {
		t.Errorf("%+v", v)
	}
}

// TestRanks is the way ranks are written.
func TestRanks(t *testing.T) {
	for want, ranks := range map[string][]int{
		"ranks ": nil, "rank 3": {3}, "ranks 1, 2": {1, 2}, "ranks 1 to 3": {1, 2, 3}, "ranks 0, 2 to 4, 7": {0, 2, 3, 4, 7},
	} {
		if got := Ranks(ranks); got != want {
			t.Errorf("%v: got %q, want %q", ranks, got, want)
		}
	}
}
