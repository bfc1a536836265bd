package gate

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/ps/consistency"
)

// script drives a gate of n workers by short commands, one a line, and compares
// what it does with what is written behind "->". Commands:
//
//	push W CLOCK BASE [weight=N] [nan] [piece=N] [more]   ready W CLOCK BASE
//	read W CLOCK [version=N]                              verdict V W:CLOCK ...
//	left|lost|alive W    joined W CLOCK    tick SECONDS    end
//
// Actions: keep, apply{W:CLOCK ...}/TOTAL, skip{...}, drop W:CLOCK OUTCOME, OUTCOME
// (a reply; "again" for a duplicate), serve W=VERSION, refuse, lost W.
func script(t *testing.T, cfg Config, n int, lines string) *Gate {
	t.Helper()
	for w := range n {
		cfg.Workers = append(cfg.Workers, consistency.Worker(w))
	}
	if cfg.Shards == 0 {
		cfg.Shards = 1
	}
	if !cfg.Model.Synchronous() && cfg.Model.MaxVersionLag == 0 {
		cfg.Model.MaxVersionLag = consistency.Unbounded
	}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var now time.Duration
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		command, want, _ := strings.Cut(strings.TrimSpace(line), "->")
		ev := parse(t, strings.Fields(command), &now)
		actions, why := g.Step(now, ev)
		if got := show(actions); got != strings.TrimSpace(want) {
			t.Errorf("%s\n got %s\n want %s\n (%s)", command, got, strings.TrimSpace(want), why)
		}
		if st := g.Stats(); !st.Balanced() {
			t.Fatalf("%s: %+v", command, st)
		}
	}
	return g
}

func parse(t *testing.T, words []string, now *time.Duration) Event {
	t.Helper()
	kinds := map[string]EventKind{
		"push": EventPush, "ready": EventReady, "read": EventRead, "verdict": EventVerdict, "alive": EventAlive, "left": EventLeft,
		"lost": EventLost, "joined": EventJoined, "tick": EventTick, "end": EventEnd,
	}
	ev := Event{Kind: kinds[words[0]], Seq: consistency.Seq{Last: true}, Ballot: Ballot{Weight: 1, Finite: true}}
	ev.Verdict.Rate = 1
	var numbers []int64
	for _, word := range words[1:] {
		var n int64
		key, value, _ := strings.Cut(word, "=")
		if key == word {
			value = word
		}
		var m consistency.Member
		if _, err := fmt.Sscanf(word, "%d:%d", &m.Worker, &m.Clock); err == nil {
			m.Weight, m.Scale, m.Base = 1, 1, ev.Verdict.Version
			ev.Verdict.Set = append(ev.Verdict.Set, m)
			ev.Verdict.Total++
			continue
		}
		switch _, err := fmt.Sscan(value, &n); {
		case word == "nan":
			ev.Ballot.Finite = false
		case word == "more":
			ev.Seq.Last = false
		case err != nil:
			t.Fatalf("what is %q?", word)
		case key == "weight":
			ev.Ballot.Weight = float64(n)
		case key == "piece":
			ev.Seq.Piece = uint16(n)
		case key == "version":
			ev.Version = n
		case ev.Kind == EventTick:
			*now += time.Duration(n) * time.Second
		case ev.Kind == EventVerdict:
			ev.Verdict.Version = n
		default:
			numbers = append(numbers, n)
		}
	}
	numbers = append(numbers, 0, 0, 0)
	ev.Worker, ev.Seq.Clock, ev.Base = consistency.Worker(numbers[0]), numbers[1], numbers[2]
	return ev
}

func show(actions []Action) string {
	var all []string
	for _, a := range actions {
		text := a.Kind.String()
		switch a.Kind { //nolint:exhaustive // the others have nothing more to show
		case ActionApply, ActionSkip:
			var set []string
			for _, m := range a.Verdict.Set {
				set = append(set, fmt.Sprintf("%d:%d", m.Worker, m.Clock))
			}
			text = fmt.Sprintf("%s{%s}/%g", text, strings.Join(set, " "), a.Verdict.Total)
			if a.Verdict.Rate != 1 {
				text += fmt.Sprintf("@%.2g", a.Verdict.Rate)
			}
		case ActionDrop:
			text = fmt.Sprintf("drop %d:%d %v", a.Worker, a.Clock, a.Outcome)
		case ActionReply:
			text = a.Outcome.String()
			if a.Duplicate {
				text = "again " + text
			}
		case ActionServe:
			text = fmt.Sprintf("serve %d=%d", a.Worker, a.Version)
		case ActionLost:
			text = fmt.Sprintf("lost %d", a.Worker)
		default:
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func TestBSP(t *testing.T) {
	script(t, Config{Model: consistency.Model{Kind: consistency.BSP}}, 3, `
		read 0 0                -> serve 0=0
		push 0 0 0 weight=2     -> keep, pending
		read 0 1                ->
		push 0 0 0 weight=2     -> again pending
		push 0 1 0              -> refuse
		push 1 0 0 weight=0     -> keep, pending
		push 2 0 0 weight=3     -> keep, apply{0:0 1:0 2:0}/5, applied, serve 0=1
		push 1 0 0              -> again applied
		push 1 1 1              -> refuse
		read 1 1                -> serve 1=1
		read 2 1                -> serve 2=1
		push 0 1 1 nan          -> keep, pending
		push 1 1 1              -> keep, pending
		lost 2                  ->
		joined 2 1              ->
		push 2 1 1 more         -> keep, pending
		push 2 1 1 piece=1      -> keep, skip{0:1 1:1 2:1}/3, skipped
		read 2 2                -> serve 2=2
		left 1                  ->
		push 2 2 2              -> keep, pending
		lost 0                  ->
		end                     -> drop 2:2 expired
		read 2 2                -> refuse`)
	script(t, Config{Model: consistency.Model{Kind: consistency.BSP, OnLoss: consistency.Continue}}, 3, `
		push 0 0 0              -> keep, pending
		push 1 0 0 more         -> keep, pending
		push 2 0 0              -> keep, pending
		lost 2                  ->
		lost 1                  -> drop 1:0 expired, apply{0:0 2:0}/2
		push 1 0 0              -> refuse
		joined 1 0              ->
		push 1 0 0              -> again expired
		read 1 1                -> serve 1=1
		left 2                  ->
		push 1 1 1              -> keep, pending
		read 0 1                -> serve 0=1
		push 0 1 1              -> keep, apply{0:1 1:1}/2, applied`)
}

func TestQuorum(t *testing.T) {
	g := script(t, Config{Model: consistency.Model{Kind: consistency.Quorum, K: 2}}, 4, `
		push 3 0 0              -> keep, pending
		read 3 1                ->
		push 1 0 0 weight=4     -> keep, apply{1:0 3:0}/5, applied, serve 3=1
		push 0 0 0              -> keep, drop 0:0 late, late
		read 0 1                -> serve 0=1
		push 0 1 1              -> keep, pending
		left 1                  ->
		lost 3                  ->
		push 2 0 0              -> keep, drop 2:0 late, late
		left 2                  -> apply{0:1}/1
		push 3 1 1              -> refuse
		joined 3 1              ->
		read 0 2                -> serve 0=2
		push 0 2 2              -> keep, pending
		left 0                  ->
		read 3 1                -> serve 3=2
		push 3 1 2              -> keep, apply{0:2 3:1}/2, applied`)
	want := consistency.Counts{Pushed: 7, Applied: 5, Late: 2}
	if got := g.Stats().Counts; got != want {
		t.Error(cmp.Diff(want, got))
	}
	for outcome, of := range map[consistency.Outcome]consistency.Member{
		consistency.Late: {Worker: 0, Clock: 0}, consistency.Applied: {Worker: 3, Clock: 1}, consistency.Unknown: {Worker: 3, Clock: 2},
	} {
		if got := g.Outcome(of.Worker, of.Clock); got != outcome {
			t.Errorf("clock %d of worker %d is %v, want %v", of.Clock, of.Worker, got, outcome)
		}
	}
	// 60 of 64, four of whom end: nobody waits for ever (tensorflow#20342).
	lines := ""
	for w := range 59 {
		lines += fmt.Sprintf("push %d 0 0 -> keep, pending\n", w)
	}
	lines += "left 59 ->\nleft 60 ->\nleft 61 ->\nleft 62 ->\n"
	all := strings.TrimSpace(strings.ReplaceAll(fmt.Sprint(clocks(59)), "[", ""))
	lines += "left 63 -> apply{" + strings.TrimSuffix(all, "]") + "}/59"
	script(t, Config{Model: consistency.Model{Kind: consistency.Quorum, K: 60}}, 64, lines)
}

func clocks(n int) (all []string) {
	for w := range n {
		all = append(all, fmt.Sprintf("%d:0", w))
	}
	return all
}

func TestLeadAndOthers(t *testing.T) {
	model := consistency.Model{Kind: consistency.Quorum, K: 2}
	script(t, Config{Model: model, Shards: 2}, 3, `
		push 0 0 0       -> keep, pending
		push 1 0 0       -> keep, pending
		push 2 0 0       -> keep, pending
		push 0 1 0       -> refuse
		ready 0 1 0      -> refuse
		ready 0 0 0      -> pending
		ready 0 0 0      -> pending
		read 0 1         ->
		verdict 0 0:0    -> refuse
		ready 1 0 0      -> apply{0:0 1:0}/2, drop 2:0 late, applied, serve 0=1
		ready 2 0 0      -> late
		ready 1 0 0      -> applied
		read 1 1         -> serve 1=1
		push 0 1 1       -> keep, pending
		push 1 1 1       -> keep, pending
		ready 1 1 0      -> drop 1:1 late, late
		lost 0           -> drop 0:1 expired
		joined 0 2       ->
		ready 0 1 1      -> expired`)
	script(t, Config{Model: model, Shard: 1, Shards: 2}, 3, `
		push 0 0 0       -> keep, pending
		push 1 0 0       -> keep, pending
		ready 1 0 0      -> refuse
		read 0 1 version=1 ->
		verdict 0 0:0 2:0 -> refuse
		verdict 1 0:0 1:0 -> refuse
		verdict 0 1:0 0:0 -> refuse
		verdict 0 0:0 1:0 -> apply{0:0 1:0}/2, serve 0=1
		verdict 0 0:0 1:0 ->
		verdict 0 0:0    -> refuse
		push 2 0 0       -> keep, drop 2:0 late, late
		lost 0           ->
		joined 0 3       ->
		push 0 2 1       -> refuse
		push 0 3 1       -> keep, pending
		lost 0           ->
		joined 0 4       ->
		push 0 4 1       -> keep, drop 0:3 late, pending`)
}

func TestASP(t *testing.T) {
	g := script(t, Config{Model: consistency.Model{Kind: consistency.ASP, MaxVersionLag: 1, Stale: consistency.Inverse, Scale: consistency.Mean}}, 2, `
		push 0 0 0 weight=4   -> keep, apply{0:0}/1, applied
		push 1 0 0 weight=0   -> keep, skip{1:0}/0, skipped
		push 1 1 0            -> keep, apply{1:1}/1@0.5, applied
		push 1 2 0            -> keep, drop 1:2 late, late
		push 1 3 3            -> refuse
		read 1 4              ->
		read 1 5              -> refuse
		push 1 3 0 piece=1    -> keep, pending
		push 1 3 0 piece=2    -> refuse
		push 1 3 0 piece=1    -> again pending
		push 1 3 0 more       -> keep, drop 1:3 late, late, serve 1=2
		push 1 4 2 piece=3 more -> keep, pending
		push 1 4 2 piece=2    -> refuse
		left 1                -> drop 1:4 expired
		push 1 5 2            -> refuse
		read 1 5              -> serve 1=2`)
	st := g.Stats()
	want := []consistency.Bucket{{Staleness: 1, Count: 1}}
	if d := cmp.Diff(want, st.Workers[1].Staleness); d != "" {
		t.Error(d)
	}
	if want := (consistency.Counts{Pushed: 5, Applied: 1, Late: 2, Skipped: 1, Expired: 1}); st.Workers[1].Counts != want {
		t.Error(cmp.Diff(want, st.Workers[1].Counts))
	}
}

func TestSSP(t *testing.T) {
	script(t, Config{Model: consistency.Model{Kind: consistency.SSP, Slack: 1, Deadline: 10 * time.Second}}, 3, `
		push 0 0 0            -> keep, apply{0:0}/1, applied
		read 0 1              -> serve 0=1
		push 0 1 1            -> keep, apply{0:1}/1, applied
		read 0 2              ->
		push 1 0 0            -> keep, apply{1:0}/1, applied
		push 2 0 0            -> keep, apply{2:0}/1, applied, serve 0=4
		push 0 2 4            -> keep, apply{0:2}/1, applied
		read 0 3              ->
		tick 9                ->
		alive 1               ->
		tick 9                -> lost 2
		push 1 1 0            -> keep, apply{1:1}/1, applied, serve 0=6
		read 2 1              -> refuse
		joined 2 1            ->
		push 0 3 6            -> keep, apply{0:3}/1, applied
		read 0 4              ->
		left 1                ->
		lost 2                -> serve 0=7`)
}

// TestBadInput: what no program of ours sends is refused, changes nothing and
// says what is wrong.
func TestBadInput(t *testing.T) {
	g := script(t, Config{Model: consistency.Model{Kind: consistency.ASP}, Clock: 5}, 1, ``+"alive 0 ->")
	last := consistency.Seq{Clock: 5, Last: true}
	for text, ev := range map[string]Event{
		"rank 7 is no worker of shard 0":             {Kind: EventPush, Worker: 7},
		"unknown event(99)":                          {Kind: 99},
		"made of version 1":                          {Kind: EventPush, Seq: last, Base: 1},
		"made of version -1":                         {Kind: EventPush, Seq: last, Base: -1},
		"with weight NaN":                            {Kind: EventPush, Seq: last, Ballot: Ballot{Weight: math.NaN()}},
		"with weight -1":                             {Kind: EventPush, Seq: last, Ballot: Ballot{Weight: -1}},
		"the limit is 16384 pieces":                  {Kind: EventPush, Seq: consistency.Seq{Clock: 5, Piece: PiecesMax}},
		"pushes clock -1":                            {Kind: EventPush, Seq: consistency.Seq{Clock: -1}},
		"pushes clock 4, which shard 0 passed":       {Kind: EventPush, Seq: consistency.Seq{Clock: 4}},
		"reads for clock -1":                         {Kind: EventRead, Seq: consistency.Seq{Clock: -1}},
		"joins at clock -1":                          {Kind: EventJoined, Seq: consistency.Seq{Clock: -1}},
		"a verdict, under asp":                       {Kind: EventVerdict},
		"ready at shard 0, which does not lead":      {Kind: EventReady},
		"joins at clock 9223372036854775807":         {Kind: EventJoined, Seq: consistency.Seq{Clock: math.MaxInt64}},
		"pushes clock 6 before its clock 5 is whole": {Kind: EventPush, Seq: consistency.Seq{Clock: 6}},
	} {
		actions, _ := g.Step(0, ev)
		if len(actions) != 1 || actions[0].Kind != ActionRefuse || !errors.Is(actions[0].Err, ErrUsage) || !strings.Contains(actions[0].Err.Error(), text) {
			t.Errorf("%+v: %v, want a refusal with %q", ev, actions, text)
		}
	}
	if st := g.Stats(); st.Pushed != 0 || st.Workers[0].Clock != 5 || st.Refused != 15 {
		t.Errorf("after refusals: %+v", st)
	}
	for range ReadsMax {
		g.Step(0, Event{Kind: EventRead, Seq: consistency.Seq{Clock: 6}})
	}
	if actions, _ := g.Step(0, Event{Kind: EventRead, Seq: consistency.Seq{Clock: 6}}); show(actions) != "refuse" {
		t.Errorf("a read beyond the limit: %v", actions)
	}
}

// TestOutcomesKept: outcomes are forgotten after their number, and a push that is
// older is a repetition all the same.
func TestOutcomesKept(t *testing.T) {
	g := script(t, Config{Model: consistency.Model{Kind: consistency.ASP}}, 1, "alive 0 ->")
	push := func(clock int64) string {
		actions, _ := g.Step(0, Event{Kind: EventPush, Seq: consistency.Seq{Clock: clock, Last: true}, Ballot: Ballot{Weight: 1, Finite: true}})
		return show(actions)
	}
	for c := range int64(OutcomesKept + 1) {
		if got := push(c); got != "keep, apply{0:"+fmt.Sprint(c)+"}/1, applied" {
			t.Fatal(got)
		}
	}
	if old, kept := push(0), push(1); old != "again unknown" || kept != "again applied" {
		t.Errorf("a repetition of the oldest: %s, of the next: %s", old, kept)
	}
}

func TestRestoreRefuses(t *testing.T) {
	cfg := Config{Model: consistency.Model{Kind: consistency.BSP}, Workers: []consistency.Worker{0}, Shards: 1}
	for name, w := range map[string]WorkerState{
		"a stranger":   {Worker: 4},
		"no outcomes":  {Clock: 3},
		"pieces":       {Open: &OpenState{Pieces: []uint16{2, 1}}},
		"whole beyond": {Whole: &WholeState{Clock: 1}},
	} {
		if _, err := Restore(cfg, State{Workers: []WorkerState{w}}); err == nil {
			t.Errorf("%s: restored", name)
		}
	}
	if _, err := New(Config{Model: cfg.Model, Workers: []consistency.Worker{1, 1}, Shards: 1}); err == nil {
		t.Error("a rank twice")
	}
}
