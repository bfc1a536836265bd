package coord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	pb "github.com/gangline/gangline/coord/internal/coordpb"
)

// Limits and defaults.
const (
	// MaxReport bounds the report of one rank, in bytes.
	MaxReport = 16 << 20
	// MaxNote bounds the note of rank 0, in bytes.
	MaxNote = 64 << 10
	// MaxWorld bounds the number of ranks.
	MaxWorld = 4096
	// DefaultJoinTimeout is how long ranks have to join.
	DefaultJoinTimeout = time.Minute
	// DefaultHeartbeatTimeout is how long a rank may be silent.
	DefaultHeartbeatTimeout = 10 * time.Second

	maxMessage    = MaxReport + 64<<10
	maxText       = 16 << 10 // of an error
	maxWord       = 1 << 10  // of a name, an address, a digest
	maxStreams    = 16       // of one connection
	maxStrangers  = 100      // refused tokens that are logged
	keepaliveTime = 10 * time.Second
	keepaliveWait = 5 * time.Second
	closeGrace    = 2 * time.Second
	// greetTime bounds how long a connection may say nothing that makes sense:
	// Close waits for those that still may, and strangers come to any port.
	greetTime = 5 * time.Second
)

// ServerConfig says what a coordinator waits for and how long.
type ServerConfig struct {
	// World is the number of ranks, 1 to MaxWorld.
	World int
	// Token must be shown by every member. It must not be empty, and should be
	// a new random one for each generation.
	Token string
	// JoinTimeout is how long after NewServer all ranks must have joined; 0
	// means DefaultJoinTimeout.
	JoinTimeout time.Duration
	// HeartbeatTimeout is how long a rank may be silent; members send four
	// times as often. 0 means DefaultHeartbeatTimeout.
	HeartbeatTimeout time.Duration
	// LostGrace is how long a broken stream waits for Server.Exited to say more;
	// 0, for a server that did not start the processes, does not wait.
	LostGrace time.Duration
	// Generation is told to all members.
	Generation uint64
	// Logger takes every decision with its reason; nil discards them.
	Logger *slog.Logger
	// Now is the clock that members compare theirs with; nil means time.Now.
	Now func() time.Time
	// OnProgress takes members' progress. It is called from one goroutine a
	// rank and must return quickly. May be nil.
	OnProgress func(rank int, p Progress)
}

// Progress is a small message from a rank of which only the latest counts.
type Progress struct {
	Step int64
	// Total is the steps of the whole run; 0: not known.
	Total             int64
	Loss              float64
	MetricName        string
	Metric            float64
	ExamplesPerSecond float64
	// BytesPerSecond is the payload that the rank sends and receives.
	BytesPerSecond float64
}

// Outcome is what is left of a generation.
type Outcome struct {
	// Reports holds what each rank gave to Done, by rank; after an abort, of
	// those that were done before.
	Reports map[int][]byte
	// Members are those that joined, by rank.
	Members []Member
}

// Server coordinates one generation.
type Server struct {
	pb.UnimplementedCoordinatorServer

	cfg    ServerConfig
	grpc   *grpc.Server
	health *health.Server
	start  time.Time

	mu        sync.Mutex
	core      *Core
	streams   map[int]*memberStream
	departed  []*pb.CoordinatorMessage // who is done, in order
	strangers int

	started   chan struct{} // closed when the generation runs
	ended     chan struct{} // closed when the core is in phase Ended
	kick      chan struct{} // the deadline may have changed
	stop      chan struct{}
	closeOnce sync.Once
	running   sync.WaitGroup // the ticker and the readers of streams
}

// NewServer returns a server whose JoinTimeout runs from now on. It must be
// closed, whether it serves or not.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.World < 1 || cfg.World > MaxWorld {
		return nil, fmt.Errorf("coord: world is %d, it must be 1 to %d", cfg.World, MaxWorld)
	}
	if cfg.Token == "" {
		return nil, errors.New("coord: a server needs a token")
	}
	if cfg.JoinTimeout <= 0 {
		cfg.JoinTimeout = DefaultJoinTimeout
	}
	if cfg.HeartbeatTimeout <= 0 {
		cfg.HeartbeatTimeout = DefaultHeartbeatTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{
		cfg: cfg,
		core: NewCore(CoreConfig{
			World: cfg.World, Generation: cfg.Generation, JoinTimeout: cfg.JoinTimeout,
			HeartbeatTimeout: cfg.HeartbeatTimeout, LostGrace: cfg.LostGrace,
		}),
		start:   time.Now(),
		streams: make(map[int]*memberStream),
		health:  health.NewServer(),
		started: make(chan struct{}),
		ended:   make(chan struct{}),
		kick:    make(chan struct{}, 1),
		stop:    make(chan struct{}),
	}
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(greetTime),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveWait}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveWait, PermitWithoutStream: true}),
		grpc.StreamInterceptor(s.guardStream), grpc.UnaryInterceptor(s.guardUnary),
	)
	pb.RegisterCoordinatorServer(s.grpc, s)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	s.running.Go(s.tick)
	return s, nil
}

// Serve answers members on ln until Close and closes ln.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.grpc.Serve(ln); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("coord: serve %s: %w", ln.Addr(), err)
	}
	return nil
}

// Started is closed when all ranks have joined and the generation runs.
func (s *Server) Started() <-chan struct{} { return s.started }

// Wait returns when the generation is over: nil if all ranks are done, an
// *AbortError that names the rank if not. If ctx ends first, it returns the
// cause of that, and the generation goes on.
func (s *Server) Wait(ctx context.Context) (Outcome, error) {
	select {
	case <-s.ended:
	case <-ctx.Done():
		return Outcome{}, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Outcome{Reports: s.core.Reports(), Members: s.core.Members()}
	if cause := s.core.Cause(); cause != nil {
		return out, cause
	}
	return out, nil
}

// Exited tells the server that the process of rank has ended, in a whole
// sentence that names it. It has no effect if the rank is done.
func (s *Server) Exited(rank int, sentence string) {
	if rank < 0 || rank >= s.cfg.World {
		panic(fmt.Sprintf("coord: rank %d exited in a world of %d", rank, s.cfg.World))
	}
	s.step(Exited{Rank: rank, Text: sentence}, nil)
}

// Stop ends the generation on all ranks, with the reason. It does not wait.
func (s *Server) Stop(reason string) { s.step(Stop{Text: reason}, nil) }

// Close ends the generation if it is not over, gives members up to two seconds
// to hear how it ended, and returns when no goroutine is left.
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		s.Stop("the coordinator was closed")
		s.health.Shutdown()
		graceful := make(chan struct{})
		go func() {
			s.grpc.GracefulStop()
			close(graceful)
		}()
		timer := time.NewTimer(closeGrace)
		defer timer.Stop()
		select {
		case <-graceful:
		case <-timer.C:
			s.grpc.Stop()
			<-graceful
		}
		close(s.stop)
		s.running.Wait()
	})
	return nil
}

// tick feeds the core with time, at its deadlines.
func (s *Server) tick() {
	timer := time.NewTimer(s.untilDeadline())
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			s.step(Tick{}, nil)
		case <-s.kick:
		case <-s.ended:
			return
		case <-s.stop:
			return
		}
		timer.Reset(s.untilDeadline())
	}
}

func (s *Server) untilDeadline() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	due, some := s.core.Deadline()
	if !some {
		return time.Hour
	}
	return max(due-time.Since(s.start), 0)
}

// step gives one event to the core and does what it says. st is the stream that
// asks to join, nil for other events. The result is why it was refused.
func (s *Server) step(event Event, st *memberStream) (refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	actions, why := s.core.Step(time.Since(s.start), event)
	s.log(event, actions, why)
	for _, action := range actions {
		switch a := action.(type) {
		case Accept:
			st.rank = a.Rank
			s.streams[a.Rank] = st
			st.control <- acceptedMessage(s.cfg.Generation, s.cfg.HeartbeatTimeout)
		case Refuse:
			refused = a.Reason
		case Tell:
			s.streams[a.Rank].control <- noteMessage(a.Note)
		case Start:
			s.broadcast(startMessage(a.Members))
			close(s.started)
			s.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
		case Ask:
			s.broadcast(askMessage())
		case Left:
			s.part(a)
		case Abort:
			s.broadcast(abortMessage(a.Cause))
			close(s.ended)
		case End:
			s.broadcast(endMessage())
			close(s.ended)
		}
	}
	if _, ok := event.(Heard); !ok {
		select {
		case s.kick <- struct{}{}:
		default:
		}
	}
	return refused
}

// broadcast never blocks: a stream takes at most Accepted, Note, Start, Ask and one of
// Abort and End, and control has room for all.
func (s *Server) broadcast(m *pb.CoordinatorMessage) {
	for _, st := range s.streams {
		st.control <- m
	}
}

// part lets every stream tell that a rank is done, when it comes to it: of these
// there may be as many as ranks.
func (s *Server) part(l Left) {
	s.departed = append(s.departed, leftMessage(l))
	for _, st := range s.streams {
		select {
		case st.parted <- struct{}{}:
		default:
		}
	}
}

// nextDeparted returns the i-th rank that is done, nil if there are not so many.
func (s *Server) nextDeparted(i int) *pb.CoordinatorMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= len(s.departed) {
		return nil
	}
	return s.departed[i]
}

func (s *Server) log(event Event, actions []Action, why string) {
	switch event.(type) {
	case Heard:
		return
	case Tick:
		if len(actions) == 0 {
			s.cfg.Logger.Debug(why)
			return
		}
	}
	// How a generation ends is what Wait returns: whoever waits says it. So only a
	// refusal is a warning, and only while it matters.
	log := s.cfg.Logger.Info
	for _, action := range actions {
		if _, ok := action.(Refuse); ok && s.core.Cause() == nil {
			log = s.cfg.Logger.Warn
		}
	}
	log(why)
}

// memberStream is the coordinator's end of one member's stream.
type memberStream struct {
	rank    int
	control chan *pb.CoordinatorMessage
	pongs   chan *pb.CoordinatorMessage
	parted  chan struct{} // there are more of Server.departed
	told    int           // of them, to this member
}

// Join serves one member's stream; it implements the generated interface.
func (s *Server) Join(stream pb.Coordinator_JoinServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	hello, err := helloEvent(first)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	st := &memberStream{
		control: make(chan *pb.CoordinatorMessage, 5),
		pongs:   make(chan *pb.CoordinatorMessage, 1),
		parted:  make(chan struct{}, 1),
	}
	if reason := s.step(hello, st); reason != "" {
		return status.Error(codes.FailedPrecondition, reason)
	}
	// The reader ends at the latest when this handler has returned, because
	// that cancels the stream. Close waits for handlers, then for readers.
	lost := make(chan struct{})
	s.running.Go(func() {
		defer close(lost)
		s.read(stream, st)
	})
	return st.write(stream, s, lost)
}

// write sends to the member until the generation is over or the stream is lost.
func (st *memberStream) write(stream pb.Coordinator_JoinServer, s *Server, lost <-chan struct{}) error {
	for {
		var m *pb.CoordinatorMessage
		select {
		case m = <-st.control:
		default:
			select {
			case m = <-st.control:
			case m = <-st.pongs:
			case <-st.parted:
				if m = s.nextDeparted(st.told); m == nil {
					continue
				}
				st.told++
				select { // there may be more
				case st.parted <- struct{}{}:
				default:
				}
			case <-lost:
				return nil
			}
		}
		if err := stream.Send(m); err != nil {
			return err
		}
		if m.GetAbort() != nil || m.GetEnd() != nil {
			return nil
		}
	}
}

// read turns what a member sends into events, until its stream ends.
func (s *Server) read(stream pb.Coordinator_JoinServer, st *memberStream) {
	for {
		m, err := stream.Recv()
		if err != nil {
			s.step(Lost{Rank: st.rank, Text: lostText(err)}, nil)
			return
		}
		switch k := m.GetKind().(type) {
		case *pb.MemberMessage_Ping:
			s.step(Heard{Rank: st.rank}, nil)
			select {
			case st.pongs <- pongMessage(k.Ping, s.cfg.Now()):
			case <-stream.Context().Done():
			}
		case *pb.MemberMessage_Progress:
			s.step(Heard{Rank: st.rank}, nil)
			if s.cfg.OnProgress != nil {
				s.cfg.OnProgress(st.rank, progressOf(k.Progress))
			}
		case *pb.MemberMessage_Plan:
			s.step(planEvent(st.rank, k.Plan), nil)
		case *pb.MemberMessage_Fail:
			s.step(failEvent(st.rank, k.Fail), nil)
		case *pb.MemberMessage_Done:
			s.step(Done{Rank: st.rank, Report: k.Done.GetReport(), Calls: callsOf(k.Done.GetCalls())}, nil)
		case *pb.MemberMessage_State:
			s.step(State{Rank: st.rank, Calls: callsOf(k.State.GetCalls())}, nil)
		default:
			s.step(Fail{Rank: st.rank, Peer: NoRank, Text: "it sent a message that the coordinator does not know"}, nil)
		}
	}
}

func lostText(err error) string {
	if errors.Is(err, io.EOF) {
		return "it closed its stream to the coordinator before it was done"
	}
	switch status.Code(err) {
	case codes.Canceled, codes.Unavailable:
		return "its stream to the coordinator broke before it was done"
	default:
		return "its stream to the coordinator broke: " + status.Convert(err).Message()
	}
}
