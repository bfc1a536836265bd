// Package cost foretells how long a collective takes, and so which algorithm is the
// best for a size, a number of ranks and the hosts that they are on.
//
// The model is Hockney's: a message of b bytes takes alpha + b·beta seconds from
// when it is sent until it is there, sender and receiver are busy for so long, and
// adding b bytes takes b·gamma: twice as much where more than a segment is added at once
// (see [collective.Schedule.Segments]), as it comes from memory then, not from a cache. Time follows a schedule step by step, each rank with
// a clock of its own. For n ranks on one path and B bytes (p the power of two within
// n; what is in brackets only if that is not n) it comes to
//
//	ring          2(n-1) alpha + 2 B(n-1)/n beta + B(n-1)/n gamma
//	halving       2 log2(p) alpha + 2 B(p-1)/p beta + B(p-1)/p gamma  [+ 2 alpha + 2B beta + B gamma]
//	doubling      log2(p) (alpha + B beta + B gamma)                  [+ 2 alpha + 2B beta + B gamma]
//	tree          2 ceil(log2 n) (alpha + B beta) + ceil(log2 n) B gamma, or less if n is not p
//	hierarchical  tree inside the largest host, and ring between the hosts
//
// Between hosts, messages that ranks of one host send in the same step share its
// network: each takes as many times b·beta as there are. So halving and doubling, where
// all ranks call on other hosts at once, are no match for hierarchical there.
//
// Not in it: that ranks of one host share its cores, and that trees pass on pieces while
// the next arrive.
//
// Source: R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of collective
// communication operations in MPICH", 2005; R. Hockney, "The communication challenge
// for MPP", 1994.
package cost

import (
	"slices"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/plan"
)

// Path is a kind of way between two ranks.
type Path uint8

// The paths.
const (
	Unix Path = iota // sockets of one host
	TCP              // sockets within a host or between hosts
	SHM              // memory that ranks of one host share
)

// paths are the words for them.
func paths() []string { return []string{"unix", "tcp", "shm"} }

// String returns the word for a path.
func (p Path) String() string { return paths()[p] }

// Link is what one path costs.
type Link struct {
	// Alpha is seconds a message, Beta seconds a byte of it, Gamma seconds a byte that
	// is added to what a rank has.
	Alpha float64 `json:"alpha"`
	Beta  float64 `json:"beta"`
	Gamma float64 `json:"gamma"`
}

// Table is what each path costs.
type Table [3]Link

// Default is what is taken for the costs where nobody has measured: round numbers
// of streams on a server of the 2020s, and over TCP the bytes of a network of 10 Gbit/s,
// since that is also the way between hosts. Additions are those of float32 in a cache.
// From shared memory they are nearly free: what arrives is added as it is read, where it
// would be copied else, so that a probe may find nothing at all for them.
func Default() Table {
	return Table{
		Unix: {Alpha: 15e-6, Beta: .2e-9, Gamma: .06e-9},
		TCP:  {Alpha: 20e-6, Beta: .8e-9, Gamma: .06e-9},
		SHM:  {Alpha: 2e-6, Beta: .06e-9, Gamma: .02e-9},
	}
}

// Machine says how ranks reach each other.
type Machine struct {
	// Costs of the paths; the zero value is Default.
	Costs Table
	// Local is the path inside a host; between hosts it is TCP.
	Local Path
	// Hosts are the indices of the ranks by host, each once; empty: all are on one.
	Hosts [][]int
}

// costs are the costs that count.
func (m *Machine) costs() Table {
	if m.Costs == (Table{}) {
		return Default()
	}
	return m.Costs
}

// links gives the costs of the way between any two of n ranks.
func (m *Machine) links(n int) func(i, j int) *Link {
	costs, host := m.costs(), make([]int, n)
	for h, ranks := range m.Hosts {
		for _, i := range ranks {
			host[i] = h
		}
	}
	return func(i, j int) *Link {
		if host[i] == host[j] {
			return &costs[m.Local]
		}
		return &costs[TCP]
	}
}

// way is from one rank to another.
type way struct{ from, to int }

// crowds returns, for every step of every rank that sends to another host, how many
// ranks of its own host do so in the same step.
func (m *Machine) crowds(s *collective.Schedule) func(i, k int) float64 {
	host := make([]int, s.N)
	for h, ranks := range m.Hosts {
		for _, i := range ranks {
			host[i] = h
		}
	}
	if len(m.Hosts) < 2 {
		return func(int, int) float64 { return 1 }
	}
	crowd := make(map[way]float64) // by host and step
	leaves := func(i, k int) bool {
		to := s.Ranks[i][k].To
		return to != collective.Nobody && host[to] != host[i]
	}
	for i, steps := range s.Ranks {
		for k := range steps {
			if leaves(i, k) {
				crowd[way{host[i], k}]++
			}
		}
	}
	return func(i, k int) float64 {
		if leaves(i, k) {
			return crowd[way{host[i], k}]
		}
		return 1
	}
}

// Time returns the seconds until the last rank has ended its part of a schedule on a
// buffer of so many bytes, if all begin at once. It takes O(steps of all ranks).
func Time(s *collective.Schedule, bytes int, m Machine) float64 {
	r := &run{
		s: s, bytes: bytes, whole: s.Segments(bytes) == 1, link: m.links(s.N), crowd: m.crowds(s), clock: make([]float64, s.N), free: make([]float64, s.N),
		at: make([]int, s.N), sent: make([]bool, s.N), arrives: make(map[way][]float64),
	}
	for moved := true; moved; {
		moved = false
		for i := range s.N {
			for r.at[i] < len(s.Ranks[i]) && r.step(i) {
				moved = true
			}
		}
	}
	return slices.Max(r.clock)
}

// run is a schedule under way.
type run struct {
	s       *collective.Schedule
	bytes   int
	whole   bool // chunks are not cut to segments
	link    func(i, j int) *Link
	crowd   func(i, k int) float64
	clock   []float64 // when a rank has begun its step
	free    []float64 // when what it sends in it is over
	at      []int
	sent    []bool
	arrives map[way][]float64 // when messages arrive
}

func (r *run) width(g collective.Range) float64 {
	return float64(collective.Bound(g.Hi, r.s.Chunks, r.bytes) - collective.Bound(g.Lo, r.s.Chunks, r.bytes))
}

// step lets a rank send, and end its step if what it receives is on its way.
func (r *run) step(i int) (ended bool) {
	st := &r.s.Ranks[i][r.at[i]]
	if !r.sent[i] {
		r.sent[i], r.free[i] = true, r.clock[i]
		if st.To != collective.Nobody && r.width(st.Send) > 0 { // nothing is not sent
			l, to := r.link(i, st.To), way{i, st.To}
			r.free[i] += l.Alpha + r.width(st.Send)*l.Beta*r.crowd(i, r.at[i])
			r.arrives[to] = append(r.arrives[to], r.free[i])
		}
	}
	end := r.free[i]
	if st.From != collective.Nobody && r.width(st.Recv) > 0 {
		from := way{st.From, i}
		if len(r.arrives[from]) == 0 {
			return false
		}
		end = max(end, r.arrives[from][0])
		r.arrives[from] = r.arrives[from][1:]
		if st.Action == collective.Add {
			add := r.width(st.Recv) * r.link(st.From, i).Gamma
			if r.whole && r.width(st.Recv) > collective.SegmentBytes {
				add *= 2
			}
			end += add
		}
	}
	r.clock[i], r.sent[i] = end, false
	r.at[i]++
	return true
}

// Choice is an algorithm and what it takes.
type Choice struct {
	Algorithm plan.Algorithm
	Seconds   float64
}

// Chooser chooses algorithms for all-reduces over one group of ranks.
type Chooser struct {
	machine   Machine
	schedules []*collective.Schedule // by algorithm; nil: it is none for this machine
	known     map[int][]Choice       // by bytes
}

// NewChooser prepares to choose for n ranks. It panics if n is below 1, and fails if
// the hosts are not those of n ranks.
func NewChooser(n int, m Machine) (*Chooser, error) {
	c := &Chooser{machine: m, known: make(map[int][]Choice)}
	for _, a := range plan.Algorithms() {
		if a == plan.ByHosts && len(m.Hosts) < 2 {
			c.schedules = append(c.schedules, nil)
			continue
		}
		s, err := collective.AllReduceBy(a, n, m.Hosts)
		if err != nil {
			return nil, err
		}
		c.schedules = append(c.schedules, s)
	}
	return c, nil
}

// Choices returns the algorithms for a buffer of so many bytes, the fastest first;
// of those that take the same time, the one that plan.Algorithms names first.
func (c *Chooser) Choices(bytes int) []Choice {
	if all, ok := c.known[bytes]; ok {
		return all
	}
	var all []Choice
	for i, a := range plan.Algorithms() {
		if s := c.schedules[i]; s != nil {
			all = append(all, Choice{a, Time(s, bytes, c.machine)})
		}
	}
	slices.SortStableFunc(all, func(a, b Choice) int {
		switch {
		case a.Seconds < b.Seconds*(1-1e-9):
			return -1
		case b.Seconds < a.Seconds*(1-1e-9):
			return 1
		}
		return 0
	})
	c.known[bytes] = all
	return all
}
