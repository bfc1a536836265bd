package coord

import (
	"errors"
	"fmt"
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

func failMessage(text string, peer int) *pb.MemberMessage {
	fail := &pb.Fail{Text: clip(text)}
	if peer != NoRank {
		rank := int32(peer)
		fail.Peer = &rank
	}
	return &pb.MemberMessage{Kind: &pb.MemberMessage_Fail{Fail: fail}}
}

func failEvent(rank int, f *pb.Fail) Fail {
	ev := Fail{Rank: rank, Peer: NoRank, Text: clip(f.GetText())}
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

func doneMessage(report []byte) *pb.MemberMessage {
	return &pb.MemberMessage{Kind: &pb.MemberMessage_Done{Done: &pb.Done{Report: report}}}
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
	return &pb.CoordinatorMessage{Kind: &pb.CoordinatorMessage_Abort{Abort: &pb.Abort{
		Rank: int32(cause.Rank), Kind: int32(cause.Kind), Text: cause.Text,
	}}}
}

func abortOf(a *pb.Abort) *AbortError {
	return &AbortError{Rank: int(a.GetRank()), Kind: Kind(a.GetKind()), Text: a.GetText()}
}

func endMessage() *pb.CoordinatorMessage {
	return &pb.CoordinatorMessage{Kind: &pb.CoordinatorMessage_End{End: &pb.End{}}}
}
