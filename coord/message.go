package coord

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "github.com/gangline/gangline/coord/internal/coordpb"
)

// Between messages and the values of the core, both ways.

func helloMessage(m Member, world int) *pb.MemberMessage {
	return &pb.MemberMessage{Kind: &pb.MemberMessage_Hello{Hello: &pb.Hello{
		MemberId: m.ID, Rank: int32(m.Rank), World: int32(world), Role: m.Role,
		Host: m.Host, Pid: int64(m.PID), DataAddress: m.Addr, Digest: m.Digest,
		Follows: m.Follows, Note: []byte(m.Note),
	}}}
}

func helloEvent(m *pb.MemberMessage) (Hello, error) {
	h := m.GetHello()
	if h == nil {
		return Hello{}, errors.New("the first message of a member must be hello")
	}
	for _, word := range []string{h.GetMemberId(), h.GetRole(), h.GetHost(), h.GetDataAddress(), h.GetDigest()} {
		if len(word) > maxWord {
			return Hello{}, fmt.Errorf("hello has a word of %d bytes, the limit is %d", len(word), maxWord)
		}
	}
	if n := len(h.GetNote()); n > MaxNote {
		return Hello{}, fmt.Errorf("hello has a note of %d bytes, the limit is %d", n, MaxNote)
	}
	return Hello{World: int(h.GetWorld()), Member: Member{
		ID: h.GetMemberId(), Rank: int(h.GetRank()), Role: h.GetRole(), Host: h.GetHost(),
		PID: int(h.GetPid()), Addr: h.GetDataAddress(), Digest: h.GetDigest(),
		Follows: h.GetFollows(), Note: string(h.GetNote()),
	}}, nil
}

func noteMessage(note string) *pb.CoordinatorMessage {
	return &pb.CoordinatorMessage{Kind: &pb.CoordinatorMessage_Note{Note: &pb.Note{Note: []byte(note)}}}
}

func planMessage(digest string) *pb.MemberMessage {
	return &pb.MemberMessage{Kind: &pb.MemberMessage_Plan{Plan: &pb.Plan{Digest: digest}}}
}

func planEvent(rank int, p *pb.Plan) Event {
	digest := p.GetDigest()
	if len(digest) > maxWord {
		return Fail{Rank: rank, Peer: NoRank, Text: fmt.Sprintf("its digest has %d bytes, the limit is %d", len(digest), maxWord)}
	}
	return Plan{Rank: rank, Digest: digest}
}

func failMessage(text string, peer int, t Trouble) *pb.MemberMessage {
	fail := &pb.Fail{Text: clip(text), Kind: int32(t.Kind), Group: t.Group, Calls: callsMessage(t.Calls)}
	if peer != NoRank {
		rank := int32(peer)
		fail.Peer = &rank
	}
	return &pb.MemberMessage{Kind: &pb.MemberMessage_Fail{Fail: fail}}
}

func failEvent(rank int, f *pb.Fail) Fail {
	ev := Fail{Rank: rank, Peer: NoRank, Text: clip(f.GetText()), Kind: Failed, Group: clip(f.GetGroup()), Calls: callsOf(f.GetCalls())}
	if k := Kind(f.GetKind()); k == Overdue || k == Mismatch {
		ev.Kind = k
	}
	if f.Peer != nil {
		ev.Peer = int(f.GetPeer())
	}
	return ev
}

// clip makes any text fit to be sent: valid, and no longer than the limit.
func clip(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + " ..."
	}
	return strings.ToValidUTF8(text, "?")
}

func doneMessage(report []byte, calls []Call) *pb.MemberMessage {
	return &pb.MemberMessage{Kind: &pb.MemberMessage_Done{Done: &pb.Done{Report: report, Calls: callsMessage(calls)}}}
}

func stateMessage(calls []Call) *pb.MemberMessage {
	return &pb.MemberMessage{Kind: &pb.MemberMessage_State{State: &pb.State{Calls: callsMessage(calls)}}}
}

// callsMessage tells of at most MaxCalls groups: those with an open call first,
// since these are what others may wait for.
func callsMessage(calls []Call) []*pb.Call {
	if len(calls) > MaxCalls {
		calls = slices.Clone(calls)
		slices.SortStableFunc(calls, func(a, b Call) int {
			switch {
			case a.Open == b.Open:
				return 0
			case a.Open:
				return -1
			}
			return 1
		})
		calls = calls[:MaxCalls]
	}
	out := make([]*pb.Call, len(calls))
	for i, c := range calls {
		out[i] = &pb.Call{
			Group: clipWord(c.Group), Members: ranksMessage(c.Members), Sequence: c.Sequence, Open: c.Open,
			What: clipWord(c.What), SinceNanos: int64(c.Since), Waits: ranksMessage(c.Waits), Waited: c.Waited,
		}
	}
	return out
}

func callsOf(calls []*pb.Call) []Call {
	out := make([]Call, min(len(calls), MaxCalls))
	for i := range out {
		c := calls[i]
		out[i] = Call{
			Group: clipWord(c.GetGroup()), Members: ranksOf(c.GetMembers()), Sequence: c.GetSequence(), Open: c.GetOpen(),
			What: clipWord(c.GetWhat()), Since: time.Duration(c.GetSinceNanos()), Waits: ranksOf(c.GetWaits()), Waited: c.GetWaited(),
		}
	}
	return out
}

func ranksMessage(ranks []int) []int32 {
	out := make([]int32, len(ranks))
	for i, r := range ranks {
		out[i] = int32(r)
	}
	return out
}

func ranksOf(ranks []int32) []int {
	out := make([]int, min(len(ranks), MaxWorld))
	for i := range out {
		out[i] = int(ranks[i])
	}
	return out
}

// clipWord makes a word fit to be sent.
func clipWord(word string) string {
	if len(word) > maxWord {
		word = word[:maxWord-4] + " ..."
	}
	return strings.ToValidUTF8(word, "?")
}

func askMessage() *pb.CoordinatorMessage {
	return &pb.CoordinatorMessage{Kind: &pb.CoordinatorMessage_Ask{Ask: &pb.Ask{}}}
}

func leftMessage(l Left) *pb.CoordinatorMessage {
	return &pb.CoordinatorMessage{Kind: &pb.CoordinatorMessage_Left{Left: &pb.Left{Rank: int32(l.Rank), Calls: callsMessage(l.Calls)}}}
}

func pingMessage(unixNanos int64) *pb.MemberMessage {
	return &pb.MemberMessage{Kind: &pb.MemberMessage_Ping{Ping: &pb.Ping{MemberUnixNanos: unixNanos}}}
}

func pongMessage(p *pb.Ping, now time.Time) *pb.CoordinatorMessage {
	return &pb.CoordinatorMessage{Kind: &pb.CoordinatorMessage_Pong{Pong: &pb.Pong{
		MemberUnixNanos: p.GetMemberUnixNanos(), CoordinatorUnixNanos: now.UnixNano(),
	}}}
}

func progressMessage(p Progress) *pb.MemberMessage {
	return &pb.MemberMessage{Kind: &pb.MemberMessage_Progress{Progress: &pb.Progress{
		Step: p.Step, Loss: p.Loss, MetricName: clip(p.MetricName), Metric: p.Metric, ExamplesPerSecond: p.ExamplesPerSecond, Total: p.Total,
		BytesPerSecond: p.BytesPerSecond,
	}}}
}

func progressOf(p *pb.Progress) Progress {
	return Progress{
		Step: p.GetStep(), Loss: p.GetLoss(), MetricName: p.GetMetricName(), Metric: p.GetMetric(),
		ExamplesPerSecond: p.GetExamplesPerSecond(), Total: p.GetTotal(), BytesPerSecond: p.GetBytesPerSecond(),
	}
}

func acceptedMessage(generation uint64, limit time.Duration) *pb.CoordinatorMessage {
	return &pb.CoordinatorMessage{Kind: &pb.CoordinatorMessage_Accepted{Accepted: &pb.Accepted{
		Generation: generation, HeartbeatLimitNanos: int64(limit),
	}}}
}

func startMessage(members []Member) *pb.CoordinatorMessage {
	peers := make([]*pb.Peer, len(members))
	for i, m := range members {
		peers[i] = &pb.Peer{
			Rank: int32(m.Rank), MemberId: m.ID, Role: m.Role, Host: m.Host, Pid: int64(m.PID), DataAddress: m.Addr,
		}
	}
	return &pb.CoordinatorMessage{Kind: &pb.CoordinatorMessage_Start{Start: &pb.Start{Peers: peers}}}
}

func peersOf(s *pb.Start) []Peer {
	peers := make([]Peer, len(s.GetPeers()))
	for i, p := range s.GetPeers() {
		peers[i] = Peer{
			Rank: int(p.GetRank()), MemberID: p.GetMemberId(), Role: p.GetRole(),
			Host: p.GetHost(), PID: int(p.GetPid()), Addr: p.GetDataAddress(),
		}
	}
	return peers
}

func abortMessage(cause *AbortError) *pb.CoordinatorMessage {
	missing := make([]*pb.Absent, len(cause.Missing))
	for i, m := range cause.Missing {
		missing[i] = &pb.Absent{Rank: int32(m.Rank), SilentNanos: int64(m.Silent), Text: clip(m.Text)}
	}
	return &pb.CoordinatorMessage{Kind: &pb.CoordinatorMessage_Abort{Abort: &pb.Abort{
		Rank: int32(cause.Rank), Kind: int32(cause.Kind), Text: cause.Text, Missing: missing, Differ: ranksMessage(cause.Differ),
	}}}
}

func abortOf(a *pb.Abort) *AbortError {
	e := &AbortError{Rank: int(a.GetRank()), Kind: Kind(a.GetKind()), Text: a.GetText(), Differ: ranksOf(a.GetDiffer())}
	for _, m := range a.GetMissing() {
		e.Missing = append(e.Missing, Absent{Rank: int(m.GetRank()), Silent: time.Duration(m.GetSilentNanos()), Text: m.GetText()})
	}
	return e
}

func endMessage() *pb.CoordinatorMessage {
	return &pb.CoordinatorMessage{Kind: &pb.CoordinatorMessage_End{End: &pb.End{}}}
}
