package coord

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
)

// TestCoreScripts replays the scripts in testdata. Each command is an event; its
// output is what the core does and the sentence that says why. "at" moves the
// clock, which stands still otherwise.
func TestCoreScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.run(t, d)
		})
	})
}

type script struct {
	core *Core
	now  time.Duration
	// sayMissing prints who is missing and who differs.
	sayMissing bool
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	duration := func(key string, fallback time.Duration) time.Duration {
		text := ""
		if d.MaybeScanArgs(t, key, &text); text == "" {
			return fallback
		}
		v, err := time.ParseDuration(text)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return v
	}
	rank, peer := 0, NoRank
	d.MaybeScanArgs(t, "rank", &rank)
	d.MaybeScanArgs(t, "peer", &peer)
	s.now = duration("at", s.now)
	text := strings.TrimSpace(d.Input)
	switch d.Cmd {
	case "new":
		cfg := CoreConfig{
			Generation: 7, JoinTimeout: duration("join", 30*time.Second),
			HeartbeatTimeout: duration("heartbeat", 10*time.Second), LostGrace: duration("grace", 0),
		}
		d.ScanArgs(t, "world", &cfg.World)
		s.core, s.now, s.sayMissing = NewCore(cfg), 0, d.HasArg("missing")
		return s.show()
	case "hello":
		ev := Hello{World: len(s.core.members), Member: Member{Rank: rank, Role: "worker", Host: "a", PID: 100 + rank, Digest: "d1"}}
		d.MaybeScanArgs(t, "world", &ev.World)
		d.MaybeScanArgs(t, "host", &ev.Host)
		d.MaybeScanArgs(t, "pid", &ev.PID)
		d.MaybeScanArgs(t, "digest", &ev.Digest)
		d.MaybeScanArgs(t, "note", &ev.Note)
		if ev.Follows = d.HasArg("follows"); ev.Follows {
			ev.Digest = ""
		}
		return s.step(ev)
	case "plan":
		ev := Plan{Rank: rank, Digest: "d1"}
		d.MaybeScanArgs(t, "digest", &ev.Digest)
		return s.step(ev)
	case "all": // every rank joins; only the last answer is printed
		out := ""
		for rank := range s.core.members {
			out = s.step(Hello{World: len(s.core.members), Member: Member{Rank: rank, Host: "a", PID: 100 + rank, Digest: "d1"}})
		}
		return out
	case "heard":
		return s.step(Heard{Rank: rank})
	case "fail":
		text, calls := callsIn(t, d, text)
		ev := Fail{Rank: rank, Peer: peer, Text: text, Calls: calls, Kind: Failed}
		d.MaybeScanArgs(t, "group", &ev.Group)
		switch {
		case d.HasArg("overdue"):
			ev.Kind = Overdue
		case d.HasArg("mismatch"):
			ev.Kind = Mismatch
		}
		return s.step(ev)
	case "state":
		_, calls := callsIn(t, d, "\n"+text)
		return s.step(State{Rank: rank, Calls: calls})
	case "done":
		text, calls := callsIn(t, d, text)
		return s.step(Done{Rank: rank, Report: []byte(text), Calls: calls})
	case "lost":
		return s.step(Lost{Rank: rank, Text: text})
	case "exit":
		return s.step(Exited{Rank: rank, Text: text})
	case "stop":
		return s.step(Stop{Text: text})
	case "tick":
		return s.step(Tick{})
	case "show":
		return s.show()
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

// callsIn splits an input into its first line and calls, one a line: group (its
// members, joined by +), number, open, started or over, since when, and what. "open>2" waits
// for rank 2.
func callsIn(t *testing.T, d *datadriven.TestData, text string) (first string, calls []Call) {
	lines := strings.Split(text, "\n")
	for _, line := range lines[1:] {
		if line == "" {
			continue
		}
		words := strings.SplitN(line, " ", 5)
		if len(words) != 5 {
			d.Fatalf(t, "call %q: want five words", line)
		}
		c := Call{Group: words[0], What: words[4]}
		for member := range strings.SplitSeq(words[0], "+") {
			c.Members = append(c.Members, number(t, d, member))
		}
		c.Sequence = uint64(number(t, d, words[1]))
		state, waits, some := strings.Cut(words[2], ">")
		c.Waited = state == "open"
		if c.Open = c.Waited || state == "started"; some {
			c.Waits = []int{number(t, d, waits)}
		}
		since, err := time.ParseDuration(words[3])
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		c.Since = since
		calls = append(calls, c)
	}
	return lines[0], calls
}

func number(t *testing.T, d *datadriven.TestData, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return n
}

func (s *script) step(ev Event) string {
	actions, why := s.core.Step(s.now, ev)
	var b strings.Builder
	for _, action := range actions {
		switch a := action.(type) {
		case Accept:
			fmt.Fprintf(&b, "accept rank %d\n", a.Rank)
		case Refuse:
			fmt.Fprintf(&b, "refuse\n")
		case Tell:
			fmt.Fprintf(&b, "tell rank %d %q\n", a.Rank, a.Note)
		case Start:
			fmt.Fprintf(&b, "start with %d\n", len(a.Members))
		case Abort:
			fmt.Fprintf(&b, "abort rank=%d kind=%s\n", a.Cause.Rank, a.Cause.Kind)
			if s.sayMissing {
				for _, m := range a.Cause.Missing {
					fmt.Fprintf(&b, "missing rank %d for %v\n", m.Rank, m.Silent)
				}
				if len(a.Cause.Differ) > 0 {
					fmt.Fprintf(&b, "differ: %v\n", a.Cause.Differ)
				}
			}
		case Ask:
			fmt.Fprintf(&b, "ask\n")
		case Left:
			fmt.Fprintf(&b, "left rank %d, %d calls\n", a.Rank, len(a.Calls))
		case End:
			fmt.Fprintf(&b, "end\n")
		}
	}
	return b.String() + "why: " + why + "\n"
}

func (s *script) show() string {
	due := "never"
	if at, some := s.core.Deadline(); some {
		due = at.String()
	}
	out := fmt.Sprintf("%s at %v, %d joined, next deadline %s\n", s.core.Phase(), s.now, len(s.core.Members()), due)
	for rank := range s.core.members {
		if report, ok := s.core.Reports()[rank]; ok {
			out += fmt.Sprintf("report of rank %d: %s\n", rank, report)
		}
	}
	return out
}

// TestCoreProperties throws any events in any order at a core and checks its
// guarantees: one ending, one start and only with all ranks, nothing after the
// end, and a deadline as long as it is not over.
func TestCoreProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		world := rapid.IntRange(1, 4).Draw(t, "world")
		c := NewCore(CoreConfig{
			World: world, JoinTimeout: 5 * time.Second, HeartbeatTimeout: 3 * time.Second,
			LostGrace: rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "grace"),
		})
		now := time.Duration(0)
		starts, endings := 0, 0
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			now += time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond
			before := c.Phase()
			actions, why := c.Step(now, anyEvent(t, c, world))
			if why == "" {
				t.Fatal("a decision without a reason")
			}
			for _, action := range actions {
				switch a := action.(type) {
				case Start:
					starts++
					if len(c.Members()) != world || endings > 0 || len(c.unplanned()) > 0 {
						t.Fatalf("start with %d of %d members, %d of them without a plan, after %d endings", len(c.Members()), world, len(c.unplanned()), endings)
					}
				case Tell:
					if told := a.Rank; !c.members[0].joined || !c.members[told].joined || before != Gathering {
						t.Fatalf("rank %d is told too early, or while %s", told, before)
					}
				case Abort, End:
					endings++
				}
				if _, refused := action.(Refuse); before == Ended && !refused {
					t.Fatalf("%T after the end", action)
				}
			}
		}
		if starts > 1 || endings > 1 {
			t.Fatalf("%d starts, %d endings", starts, endings)
		}
		if _, some := c.Deadline(); some != (c.Phase() != Ended) {
			t.Fatalf("deadline %t in phase %s", some, c.Phase())
		}
		if (endings == 1) != (c.Phase() == Ended) {
			t.Fatalf("%d endings in phase %s", endings, c.Phase())
		}
	})
}

// anyCalls draws what a rank may say of its groups, sense or nonsense.
func anyCalls(t *rapid.T, world int) []Call {
	var calls []Call
	for range rapid.IntRange(0, 3).Draw(t, "calls") {
		calls = append(calls, Call{
			Group:    rapid.SampledFrom([]string{"a", "a", "b", "c"}).Draw(t, "group"),
			Members:  rapid.SliceOfN(rapid.IntRange(-1, world), 0, 4).Draw(t, "members"),
			Sequence: rapid.Uint64Range(0, 2).Draw(t, "sequence"), Open: rapid.Bool().Draw(t, "open"),
			What:  rapid.SampledFrom([]string{"x", "y"}).Draw(t, "what"),
			Waits: rapid.SliceOfN(rapid.IntRange(-1, world), 0, 2).Draw(t, "waits"),
		})
	}
	return calls
}

// anyEvent draws an event that a server could give: streams speak only after
// they were accepted.
func anyEvent(t *rapid.T, c *Core, world int) Event {
	rank := rapid.IntRange(0, world-1).Draw(t, "rank")
	kinds := []string{"hello", "exit", "stop", "tick", "tick", "hello", "hello"}
	if c.members[rank].joined {
		kinds = []string{"heard", "heard", "fail", "done", "done", "done", "lost", "tick", "hello", "exit", "trouble", "state", "state"}
		if c.phase == Gathering {
			kinds = append(kinds, "plan", "plan", "plan")
		}
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "hello":
		return Hello{
			World: world + rapid.IntRange(0, 9).Draw(t, "wrong")/9,
			Member: Member{
				Rank: rank, Digest: rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "digest"),
				Follows: rapid.IntRange(0, 2).Draw(t, "follows") == 0,
			},
		}
	case "plan":
		return Plan{Rank: rank, Digest: rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "digest")}
	case "heard":
		return Heard{Rank: rank}
	case "fail":
		return Fail{Rank: rank, Peer: rapid.IntRange(-1, world).Draw(t, "peer"), Text: "x"}
	case "trouble":
		return Fail{
			Rank: rank, Peer: rapid.IntRange(-1, world).Draw(t, "peer"), Text: "x", Group: "a", Calls: anyCalls(t, world),
			Kind: rapid.SampledFrom([]Kind{Failed, Overdue, Mismatch}).Draw(t, "trouble"),
		}
	case "state":
		return State{Rank: rank, Calls: anyCalls(t, world)}
	case "done":
		return Done{Rank: rank, Calls: anyCalls(t, world)}
	case "lost":
		return Lost{Rank: rank, Text: "x"}
	case "exit":
		return Exited{Rank: rank, Text: "x"}
	case "stop":
		return Stop{Text: "x"}
	}
	return Tick{}
}
