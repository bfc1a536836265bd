package coord

import (
	"fmt"
	"time"

	pb "github.com/gangline/gangline/coord/internal/coordpb"
)

// The two goroutines of a session: receive owns the stream's reading side, send
// its writing side. Both end when the session is over or its stream is cancelled.

func (s *Session) receive() {
	for {
		m, err := s.stream.Recv()
		if err != nil {
			s.finish(s.explain(err))
			return
		}
		s.mu.Lock()
		s.heard = time.Now()
		s.mu.Unlock()
		switch k := m.GetKind().(type) {
		case *pb.CoordinatorMessage_Accepted:
			s.accept(k.Accepted)
		case *pb.CoordinatorMessage_Note:
			s.tell(k.Note)
		case *pb.CoordinatorMessage_Start:
			s.begin(k.Start)
		case *pb.CoordinatorMessage_Pong:
			s.pong(k.Pong)
		case *pb.CoordinatorMessage_Ask:
			select {
			case s.asked <- struct{}{}:
			default:
			}
		case *pb.CoordinatorMessage_Left:
			if rank := int(k.Left.GetRank()); s.cfg.OnLeft != nil && rank != s.cfg.Rank {
				s.cfg.OnLeft(rank, callsOf(k.Left.GetCalls()))
			}
		case *pb.CoordinatorMessage_Abort:
			s.finish(abortOf(k.Abort))
			return
		case *pb.CoordinatorMessage_End:
			s.finish(nil)
			return
		}
	}
}

func (s *Session) accept(a *pb.Accepted) {
	select {
	case <-s.accepted:
		return
	default:
	}
	s.mu.Lock()
	s.Generation, s.limit = a.GetGeneration(), time.Duration(a.GetHeartbeatLimitNanos())
	s.mu.Unlock()
	close(s.accepted)
}

func (s *Session) tell(n *pb.Note) {
	select {
	case <-s.told:
		return
	default:
	}
	s.note = string(n.GetNote())
	close(s.told)
}

func (s *Session) begin(start *pb.Start) {
	select {
	case <-s.started:
		return
	default:
	}
	s.Peers = peersOf(start)
	close(s.started)
}

func (s *Session) pong(p *pb.Pong) {
	s.mu.Lock()
	s.clock.sample(p.GetMemberUnixNanos(), p.GetCoordinatorUnixNanos())
	count := s.clock.samples
	s.mu.Unlock()
	switch {
	case count < clockProbes:
		select {
		case s.pingNow <- struct{}{}:
		default:
		}
	case count == clockProbes:
		close(s.synced)
	}
}

func (s *Session) send() {
	beat := time.NewTicker(firstBeat)
	defer beat.Stop()
	interval, limit := firstBeat, time.Duration(0)
	last := time.Now()
	accepted := s.accepted
	s.pingNow <- struct{}{}
	for {
		var m *pb.MemberMessage
		select {
		case <-s.over:
			return
		case <-accepted:
			accepted = nil
			s.mu.Lock()
			limit = s.limit
			s.mu.Unlock()
			interval = max(limit/4, time.Millisecond)
			beat.Reset(interval)
			continue
		case <-s.pingNow:
			m = pingMessage(s.clock.now())
		case now := <-beat.C:
			if !s.coordinatorLives(now, now.Sub(last) > interval+limit/2) {
				return
			}
			last = now
			m = pingMessage(s.clock.now())
		case <-s.news:
			m = s.takeProgress()
		case <-s.asked:
			m = stateMessage(s.calls())
		case m = <-s.out:
			if p := s.takeProgress(); p != nil && s.stream.Send(p) != nil {
				return
			}
		}
		if m == nil {
			continue
		}
		if err := s.stream.Send(m); err != nil {
			return // receive learns why
		}
	}
}

func (s *Session) takeProgress() *pb.MemberMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.progress
	s.progress = nil
	if p == nil {
		return nil
	}
	return progressMessage(*p)
}

// coordinatorLives ends the session if nothing came for longer than the limit.
// If this process itself was held up, what came meanwhile may be unread: the
// coordinator gets another limit.
func (s *Session) coordinatorLives(now time.Time, heldUp bool) bool {
	s.mu.Lock()
	if heldUp {
		s.heard = now
	}
	silent, limit := now.Sub(s.heard), s.limit
	s.mu.Unlock()
	if limit == 0 || silent <= limit {
		return true
	}
	s.finish(s.coordinatorLost(fmt.Sprintf("silent for %v, the limit is %v", silent.Round(time.Millisecond), limit), silent))
	return false
}

// clock compares two clocks. Ours runs on from one reading by monotonic time.
type clock struct {
	base    time.Time
	offset  time.Duration
	best    time.Duration // the shortest way there and back
	samples int
}

func newClock() clock { return clock{base: time.Now()} }

func (c *clock) now() int64 { return c.base.UnixNano() + int64(time.Since(c.base)) }

// sample takes one probe: when we sent it and what the other's clock said.
func (c *clock) sample(sent, other int64) {
	roundTrip := time.Duration(c.now() - sent)
	if c.samples == 0 || roundTrip < c.best {
		c.best = roundTrip
		c.offset = time.Duration(other - sent - int64(roundTrip)/2)
	}
	c.samples++
}
