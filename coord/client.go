package coord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	pb "github.com/gangline/gangline/coord/internal/coordpb"
)

const (
	failAck     = 2 * time.Second // how long Fail waits for the verdict
	clockProbes = 8               // pings before the clock offset is believed
	firstBeat   = time.Second     // between heartbeats, until the limit is known

	unixPrefix = "unix:" // of the address of a socket with a path
)

// JoinConfig says who joins which coordinator.
type JoinConfig struct {
	// Address is host:port of the coordinator, or "unix:" and the path of a socket; it
	// need not listen yet.
	Address string
	Token   string
	Rank    int
	World   int
	// Role is told to the other ranks: worker, server.
	Role string
	// MemberID should last over generations; empty means one made of host and pid.
	MemberID string
	// DataAddress is where other ranks reach this one; told to them at the start.
	DataAddress string
	// Digest of the plan must be equal on all ranks.
	Digest string
	// Follow makes the plan of a rank that cannot know it by itself from the Note
	// of rank 0, and returns its digest; nil: Digest is known. Join calls it once, when
	// rank 0 has joined. Its error is the rank's own.
	Follow func(note string) (digest string, err error)
	// Note is what rank 0 has for those that follow: at most MaxNote bytes.
	Note string
	// Led says that rank 0 hosts the coordinator: its loss is then that of rank 0.
	Led bool
	// State says where this rank stands in its groups; it must return at once. It is
	// called when another rank reports a call in trouble, and by Done. May be nil.
	State func() []Call
	// OnLeft hears that a rank is done and where it stood in its groups, so that who
	// waits for it knows; it must return at once. May be nil.
	OnLeft func(rank int, calls []Call)
	// Timeout bounds Join, from the call to the start of the generation; 0
	// leaves it to ctx and to the coordinator's own join timeout.
	Timeout time.Duration
	// Logger takes what is not an error; nil discards it.
	Logger *slog.Logger
	// Dial replaces the TCP connection to Address, for tests; may be nil.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Peer is one member of the generation, as the others see it.
type Peer struct {
	Rank     int
	Addr     string
	Role     string
	MemberID string
	Host     string
	PID      int
}

// Session is one rank's membership of one generation. Its methods may be called
// from several goroutines.
type Session struct {
	// Generation is the number that the coordinator gave this membership.
	Generation uint64
	// Peers are all members by rank, this one included.
	Peers []Peer
	// ClockOffset is the coordinator's clock minus ours, from the probe with the
	// shortest way there and back; it is off by half of that at most.
	ClockOffset time.Duration

	cfg    JoinConfig
	conn   *grpc.ClientConn
	stream pb.Coordinator_JoinClient
	//nolint:containedctx // the session's life is what Context hands out
	ctx          context.Context
	cancel       context.CancelCauseFunc
	cancelStream context.CancelFunc

	accepted chan struct{} // closed when the coordinator took us in
	told     chan struct{} // closed when note is there
	started  chan struct{} // closed when the generation runs
	synced   chan struct{} // closed when the clock was probed often enough
	over     chan struct{} // closed when err is final
	out      chan *pb.MemberMessage
	pingNow  chan struct{}
	asked    chan struct{} // the coordinator wants to know where we stand
	news     chan struct{} // progress is waiting

	note string // of rank 0, for those that follow

	mu       sync.Mutex
	err      error // why it is over; nil: all ranks were done
	isOver   bool
	limit    time.Duration
	heard    time.Time
	progress *Progress
	clock    clock

	running   sync.WaitGroup
	closeOnce sync.Once
}

// Join connects to the coordinator, says hello and waits for the start of the
// generation. It fails with ErrToken, ErrRefused, an *AbortError if the
// generation is over before it started, or the cause of ctx. When ctx ends
// later, so does the session's Context.
func Join(ctx context.Context, cfg JoinConfig) (*Session, error) {
	if cfg.World < 1 || cfg.World > MaxWorld || cfg.Rank < 0 || cfg.Rank >= cfg.World {
		return nil, fmt.Errorf("coord: rank %d of world %d does not exist", cfg.Rank, cfg.World)
	}
	if cfg.Token == "" {
		return nil, errors.New("coord: joining needs a token")
	}
	if len(cfg.Note) > MaxNote {
		return nil, fmt.Errorf("coord: rank %d: note of %d bytes, at most %d: %w", cfg.Rank, len(cfg.Note), MaxNote, ErrLimit)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	conn, err := dial(cfg)
	if err != nil {
		return nil, fmt.Errorf("coord: rank %d: coordinator %s: %w", cfg.Rank, cfg.Address, err)
	}
	streamCtx, cancelStream := context.WithCancel(context.WithoutCancel(ctx))
	s := &Session{
		cfg: cfg, conn: conn, cancelStream: cancelStream, clock: newClock(),
		accepted: make(chan struct{}), told: make(chan struct{}), started: make(chan struct{}), synced: make(chan struct{}), over: make(chan struct{}),
		out: make(chan *pb.MemberMessage), pingNow: make(chan struct{}, 1), asked: make(chan struct{}, 1), news: make(chan struct{}, 1),
	}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	if err := s.join(ctx, streamCtx); err != nil {
		s.Close()
		return nil, fmt.Errorf("coord: rank %d: join coordinator %s: %w", cfg.Rank, cfg.Address, err)
	}
	return s, nil
}

func dial(cfg JoinConfig) (*grpc.ClientConn, error) {
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithPerRPCCredentials(bearer(cfg.Token)),
		grpc.WithNoProxy(), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveWait}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
	}
	if cfg.Dial != nil {
		options = append(options, grpc.WithContextDialer(cfg.Dial))
	}
	if path, ok := strings.CutPrefix(cfg.Address, unixPrefix); ok {
		options = append(options, grpc.WithAuthority("localhost"), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}))
	}
	return grpc.NewClient("passthrough:///"+cfg.Address, options...)
}

// join opens the stream and waits for the start.
func (s *Session) join(ctx, streamCtx context.Context) error {
	if s.cfg.Timeout > 0 {
		bounded, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout,
			fmt.Errorf("the generation did not start within %v", s.cfg.Timeout))
		defer cancel()
		ctx = bounded
	}
	stop := context.AfterFunc(ctx, s.cancelStream)
	defer stop()
	stream, err := pb.NewCoordinatorClient(s.conn).Join(streamCtx, grpc.WaitForReady(true))
	if err == nil {
		s.stream = stream
		err = stream.Send(helloMessage(s.member(), s.cfg.World))
		if err != nil { // the reason is what the stream ends with
			_, err = stream.Recv()
		}
	}
	switch {
	case err != nil && ctx.Err() != nil: // keep what gRPC knows of the connection
		return fmt.Errorf("%w (%s)", context.Cause(ctx), status.Convert(err).Message())
	case err != nil:
		return s.explain(err)
	}
	s.running.Go(s.receive)
	s.running.Go(s.send)
	if s.cfg.Follow != nil {
		if err := s.follow(ctx); err != nil {
			return err
		}
	}
	if err := s.await(ctx, s.accepted, s.started, s.synced); err != nil {
		return err
	}
	s.mu.Lock()
	s.ClockOffset = s.clock.offset
	s.mu.Unlock()
	return nil
}

// await returns when all steps of joining have come, one after the other.
func (s *Session) await(ctx context.Context, steps ...<-chan struct{}) error {
	for _, step := range steps {
		select {
		case <-step:
		case <-s.over:
			if ctx.Err() != nil { // which has cancelled the stream
				return context.Cause(ctx)
			}
			return s.verdict()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// follow plans by the note of rank 0 and says so.
func (s *Session) follow(ctx context.Context) error {
	if err := s.await(ctx, s.accepted, s.told); err != nil {
		return err
	}
	digest, err := s.cfg.Follow(s.note)
	if err != nil {
		return s.Fail(err)
	}
	select {
	case s.out <- planMessage(digest):
		return nil
	case <-s.over:
		return s.await(ctx, s.started) // which does not come: await says why
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// explain turns the status of a stream into an error of this package.
func (s *Session) explain(err error) error {
	silent := s.Silence()
	st, ok := status.FromError(err)
	if !ok {
		return s.coordinatorLost(err.Error(), silent)
	}
	switch st.Code() {
	case codes.Unauthenticated:
		return ErrToken
	case codes.FailedPrecondition, codes.InvalidArgument:
		return fmt.Errorf("%w: %s", ErrRefused, st.Message())
	default:
		return s.coordinatorLost(st.Message(), silent)
	}
}

// coordinatorLost is the verdict of a rank that is left alone.
func (s *Session) coordinatorLost(why string, silent time.Duration) *AbortError {
	if !s.cfg.Led {
		return &AbortError{Rank: NoRank, Kind: CoordinatorLost, Text: fmt.Sprintf("the coordinator at %s was lost: %s", s.cfg.Address, why)}
	}
	return &AbortError{
		Rank: 0, Kind: CoordinatorLost, Missing: []Absent{{Rank: 0, Silent: silent, Text: why}},
		Text: fmt.Sprintf("rank 0, which coordinates at %s, was lost: %s", s.cfg.Address, why),
	}
}

// calls is where this rank stands.
func (s *Session) calls() []Call {
	if s.cfg.State == nil {
		return nil
	}
	return s.cfg.State()
}

func (s *Session) member() Member {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	id := s.cfg.MemberID
	if id == "" {
		id = fmt.Sprintf("%s-%d-%d", host, os.Getpid(), s.cfg.Rank)
	}
	return Member{
		ID: id, Rank: s.cfg.Rank, Role: s.cfg.Role, Host: host, PID: os.Getpid(),
		Addr: s.cfg.DataAddress, Digest: s.cfg.Digest, Follows: s.cfg.Follow != nil, Note: s.cfg.Note,
	}
}

// Silence is for how long nothing has come from the coordinator.
func (s *Session) Silence() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard.IsZero() {
		return 0
	}
	return time.Since(s.heard)
}

// Context ends when the generation is aborted or the coordinator is lost, with
// an *AbortError as its cause; when the context given to Join ends, with its
// cause; and with Close. It does not end when all ranks are done.
func (s *Session) Context() context.Context { return s.ctx }

// Fail reports this rank's error to all, and waits up to two seconds for the
// verdict. It returns why the generation is over, as an *AbortError: it may name
// another rank if that failed first. If no verdict came, it returns err.
func (s *Session) Fail(err error) error { return s.fail(err, Trouble{}, failAck) }

// Trouble is what a call is in.
type Trouble struct {
	// Kind is Failed, Overdue or Mismatch.
	Kind Kind
	// Group is the name of the call's group, as State tells it.
	Group string
	// Calls are what State said when the trouble began; nil: Session asks.
	Calls []Call
}

// FailCall is Fail for an error from within a call of a group: the coordinator asks
// all ranks where they stand before it says, within VerdictGrace, who is missing or
// does something else. It waits for that so long at most; 0 means two seconds.
func (s *Session) FailCall(err error, t Trouble, wait time.Duration) error {
	if t.Calls == nil {
		t.Calls = s.calls()
	}
	if wait <= 0 {
		wait = failAck
	}
	return s.fail(err, t, wait)
}

func (s *Session) fail(err error, t Trouble, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case s.out <- failMessage(err.Error(), Blamed(err), t):
	case <-s.over:
	case <-timer.C:
		return err
	}
	select {
	case <-s.over:
		if verdict := s.verdict(); verdict != nil {
			return verdict
		}
	case <-timer.C:
	}
	return err
}

// Done reports that this rank has nothing left to do, and waits until all ranks
// are done. It fails with ErrLimit if the report is larger than MaxReport, with
// an *AbortError if another rank failed meanwhile, or with the cause of ctx.
func (s *Session) Done(ctx context.Context, report []byte) error {
	if len(report) > MaxReport {
		return fmt.Errorf("coord: rank %d: report of %d bytes, at most %d: %w", s.cfg.Rank, len(report), MaxReport, ErrLimit)
	}
	select {
	case s.out <- doneMessage(report, s.calls()):
	case <-s.over:
		return s.verdict()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-s.over:
		return s.verdict()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Progress tells the coordinator how far this rank is. It does not wait: a
// newer message replaces one that has not been sent.
func (s *Session) Progress(p Progress) {
	s.mu.Lock()
	s.progress = &p
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// Close leaves and returns when no goroutine of the session is left. Leaving
// before Done or Fail is, to the coordinator, the loss of this rank.
func (s *Session) Close() error {
	s.closeOnce.Do(func() {
		s.finish(fmt.Errorf("coord: rank %d: session %w", s.cfg.Rank, ErrClosed))
		s.cancelStream()
		s.running.Wait()
		s.cancel(ErrClosed)
		if err := s.conn.Close(); err != nil {
			s.cfg.Logger.Debug("close the connection to the coordinator", "error", err)
		}
	})
	return nil
}

// finish makes err the verdict, if there is none yet.
func (s *Session) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver {
		return
	}
	s.isOver, s.err = true, err
	if err != nil {
		s.cancel(err)
	}
	close(s.over)
}

func (s *Session) verdict() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
