package ps

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/transport"
)

// Config of a Server. The zero value works.
type Config struct {
	// Patience is how long a pull may wait for a verdict before it is refused
	// with the names of those who are missing; 0 is one minute, less is for ever.
	Patience time.Duration
	// RequestMax bounds a request in bytes: its head, parts and keys, not its
	// data; 0 is 64 MiB, which is eight million keys.
	RequestMax int
	// OnSnapshot writes the pieces of version step. What it returns goes back
	// to the worker that asked. Without it, snapshots are refused. Requests of
	// other workers go on meanwhile, also further snapshots.
	OnSnapshot func(step int64, name string, pieces []checkpoint.Piece) ([]byte, error)
	// OnDecision is told every step applied or skipped, every refusal and every
	// loss, with the reason, under the server's lock; nil is nobody.
	OnDecision func(why string)
}

// grace is how long an ending server tries to deliver refusals.
const grace = time.Second

// Server serves one shard to its workers.
type Server struct {
	ep    transport.Endpoint
	cfg   Config
	conns map[int]*conn

	mu    sync.Mutex
	shard *Shard
}

// NewServer makes a server of the shard for workers, which are the ranks that
// the shard was made for. The shard is the server's from here on.
func NewServer(ep transport.Endpoint, shard *Shard, workers []int, cfg Config) *Server {
	cfg.RequestMax = cmp.Or(cfg.RequestMax, 64<<20)
	cfg.Patience = cmp.Or(cfg.Patience, time.Minute)
	shard.Patience = cfg.Patience
	s := &Server{ep: ep, cfg: cfg, shard: shard, conns: make(map[int]*conn, len(workers))}
	for _, rank := range workers {
		s.conns[rank] = newConn(s, rank)
	}
	return s
}

// Run serves until every worker said bye, which is the orderly end and gives
// nil. If a worker is lost or sends what is no request, waiting pulls that this
// makes endless are refused and Run ends with an error that names the worker.
// If ctx ends, Run ends with its cause. No goroutine is left when it returns.
func (s *Server) Run(ctx context.Context) error {
	serve, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	send, cancelSends := context.WithCancel(ctx)
	defer cancelSends()
	var loops, ticker sync.WaitGroup
	for _, c := range s.conns {
		loops.Go(func() {
			if err := c.serve(send, serve); err != nil {
				cancel(err) // the first one counts
			}
		})
	}
	ended := make(chan struct{})
	ticker.Go(func() { s.tick(serve, cancelSends, ended) })
	loops.Wait()
	close(ended)
	ticker.Wait()
	if serve.Err() != nil {
		return fmt.Errorf("ps: store %d: %w", s.shard.layout.Store, context.Cause(serve))
	}
	return nil
}

// tick lets the machine end waits that have lasted too long. Once serve has
// ended, it gives the sends that are under way a moment before it ends them.
func (s *Server) tick(serve context.Context, cancelSends func(), ended <-chan struct{}) {
	t := time.NewTicker(max(s.cfg.Patience/4, time.Millisecond))
	defer t.Stop()
	over, last := serve.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case <-t.C:
			s.step(Event{Kind: EventTick})
		case <-over:
			over, last = nil, time.After(grace)
		case <-last:
			cancelSends()
		case <-ended:
			return
		}
	}
}

// step runs the machine and hands its replies to the workers' loops. A worker
// has one request at a time, so its mailbox is free when its reply comes.
func (s *Server) step(ev Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	actions, why := s.shard.Step(time.Now(), ev)
	notable := ev.Kind == EventLost
	for _, a := range actions {
		if a.Kind == ActionSnapshot {
			s.conns[a.To].pieces = s.shard.Export()
		}
		done := a.Kind == ActionApplied || a.Kind == ActionSkipped
		notable = notable || done || a.Kind == ActionRefuse
		if !done {
			s.conns[a.To].mailbox <- a
		}
	}
	if notable && s.cfg.OnDecision != nil {
		s.cfg.OnDecision(why)
	}
}

// Stats returns the shard's counts.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shard.Stats()
}

// lost tells the machine, and returns what Run ends with.
func (s *Server) lost(rank int, err error) error {
	s.step(Event{Kind: EventLost, From: rank})
	return fmt.Errorf("worker at rank %d lost at version %d: %w", rank, s.Stats().Version, err)
}
