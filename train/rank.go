package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/gangline/gangline/params"
	"github.com/gangline/gangline/report"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/coord/crew"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/launch"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/trace"
	"github.com/gangline/gangline/train/input"
	"github.com/gangline/gangline/train/internal/rss"
	"github.com/gangline/gangline/train/meet"
	"github.com/gangline/gangline/train/resume"
	"github.com/gangline/gangline/transport"
)

// spansMax is how many spans a rank keeps for a trace; older ones make room.
const spansMax = 200_000

// byeTimeout bounds what a rank still says after its last step.
const byeTimeout = 30 * time.Second

// Config says which rank of which job this process is.
type Config struct {
	Job job.Job
	// DataDir is what relative data paths are resolved against.
	DataDir string
	Rank    int
	// Address of the coordinator and the token that all ranks share.
	Address, Token string
	// Led says that rank 0 hosts the coordinator.
	Led bool
	// Attempt counts restarts; above 0, the run goes on from the newest
	// checkpoint if there is one.
	Attempt int
	// Trial, if not 0, makes the run one that is timed and leaves nothing: its first so
	// many steps do not count into Seconds, nothing is saved, and nothing tested at the end.
	Trial int64
	// TraceFile takes this rank's spans as JSON lines; empty: none.
	TraceFile string
	Logger    *slog.Logger
}

// role is worker or server.
func (c *Config) role() string {
	if c.Rank < c.Job.Strategy.Workers {
		return "worker"
	}
	return "server"
}

// world is the number of ranks.
func (c *Config) world() int { return c.Job.Strategy.Workers + c.Job.Strategy.Servers }

// Run lives one rank's life: plan, join, connect, work, report. The first error
// of any rank ends it; the error is then that first one.
func Run(ctx context.Context, cfg Config) (*report.Rank, error) {
	if cfg.Rank == 0 && cfg.Job.Checkpoint.Dir != "" {
		release, err := resume.Claim(ctx, cfg.Job.Checkpoint.Dir)
		if err != nil {
			return nil, err
		}
		defer func() { _ = release() }() // of a lock that ends with the process anyway
	}
	m, err := prepare(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer m.close()
	if err := m.join(ctx); err != nil {
		return nil, err
	}
	report, err := m.work(ctx)
	if err != nil {
		m.failed = true
		return nil, m.fail(err)
	}
	text, err := json.Marshal(report)
	if err != nil {
		return nil, m.session.Fail(err)
	}
	return report, m.session.Done(ctx, text)
}

// fail reports what ended this rank's work, and returns why the job is over. Of a call of
// a group the coordinator asks all ranks where they stand.
func (m *member) fail(err error) error {
	task, ok := errors.AsType[*exec.TaskError](err)
	late := errors.Is(err, exec.ErrDeadline)
	switch {
	case ok && (task.Kind == plan.Collective || task.Kind == plan.Commit):
		t := coord.Trouble{Kind: crew.KindOf(err), Group: m.board.Name(task.Group), Calls: m.board.Calls()}
		if late {
			t.Kind = coord.Overdue
		}
		if c := &t.Calls[task.Group]; len(c.Waits) == 0 {
			c.Waits = task.Peers
		}
		return crew.Verdict(m.session, crew.Blame(err), t, crew.VerdictTime(m.left(task)))
	case ok && late && len(task.Peers) > 0:
		return crew.Outside(m.session, coord.Blame(task.Peers[0], err), crew.VerdictTime(m.left(task)))
	case errors.Is(err, transport.ErrPeerLost) || errors.Is(err, transport.ErrPeerClosed) || errors.Is(err, meet.ErrLate):
		return crew.Outside(m.session, crew.Blame(err), crew.VerdictTime(crew.VerdictWait))
	}
	return m.session.Fail(err)
}

// left is the time until the deadline of a task.
func (m *member) left(task *exec.TaskError) time.Duration {
	return time.Until(task.Began.Add(time.Duration(m.setup.Job.Network.TaskTimeout)))
}

// member is a rank with what it needs to work.
type member struct {
	cfg      Config
	setup    *Setup
	rows     *input.Rows            // workers only
	from     *checkpoint.Checkpoint // what to go on from; nil: the beginning
	imported params.State           // parameters of the beginning; nil: those of the model
	joined   *crew.Member           // nil: not yet
	session  *coord.Session
	board    crew.Board // where this rank stands in the groups of its plans
	report   func(coord.Progress)
	traffic  traffic
	failed   bool // the job is over, by an error
	endpoint transport.Endpoint
	streams  []transport.Streams // by group of the plans; nil where it has none
	trace    *trace.Recorder
}

// prepare does all that needs no other rank: data, model, plan, checkpoint. A server
// reads no data: it plans when rank 0 has told what the rows look like (follow).
func prepare(ctx context.Context, cfg Config) (*member, error) {
	m := &member{cfg: cfg}
	err := m.cfg.Job.Network.ReadCosts(input.Path(cfg.DataDir, cfg.Job.Network.Costs))
	if err != nil {
		return nil, err
	}
	if m.from, err = resume.Point(cfg.Job, cfg.Attempt, cfg.Logger); err != nil {
		return nil, err
	}
	if cfg.role() == "server" {
		return m, nil
	}
	if m.rows, err = input.Open(ctx, cfg.Job, cfg.DataDir, m.from); err != nil {
		return nil, err
	}
	if m.setup, err = NewSetup(m.cfg.Job, m.rows.Train.Columns()); err != nil {
		return nil, errors.Join(err, m.rows.Close())
	}
	m.newBoard()
	if err := m.takeImport(); err != nil {
		return nil, errors.Join(err, m.rows.Close())
	}
	if cfg.TraceFile != "" {
		m.trace = trace.NewRecorder(spansMax)
	}
	return m, nil
}

// takeImport reads the parameters that the run begins with, if the job names some
// and the run does begin.
func (m *member) takeImport() (err error) {
	if m.from == nil {
		m.imported, err = imported(m.cfg.Job, m.cfg.DataDir, m.setup.Step)
	}
	return err
}

// digest is what all ranks compare: the setup's, and the imported parameters,
// which are read from a file of every host.
func (m *member) digest() (string, error) {
	d, err := m.setup.Digest(m.first())
	if err != nil || m.imported == nil {
		return d, err
	}
	params, err := m.imported.Digest(m.setup.Step)
	return d + params, err
}

// first is the step that the run begins with.
func (m *member) first() int64 {
	if m.from == nil {
		return 0
	}
	return m.from.Manifest.Step
}

// follow makes a server's plan for the columns that rank 0 has read, and returns its
// digest.
func (m *member) follow(note string) (string, error) {
	var columns []data.ColumnSpec
	err := json.Unmarshal([]byte(note), &columns)
	if err != nil {
		return "", fmt.Errorf("rank %d: what rank 0 says of the columns: %w", m.cfg.Rank, err)
	}
	if m.setup, err = NewSetup(m.cfg.Job, columns); err != nil {
		return "", err
	}
	if err := m.takeImport(); err != nil {
		return "", err
	}
	return m.digest()
}

// plan says how this rank's plan is compared with those of others.
func (m *member) plan(c *coord.JoinConfig) (err error) {
	if m.rows == nil {
		c.Follow = m.follow
		return nil
	}
	if c.Digest, err = m.digest(); err != nil || m.cfg.Rank != 0 {
		return err
	}
	note, err := json.Marshal(m.rows.Train.Columns())
	c.Note = string(note)
	return err
}

// join opens a port for data, meets the other ranks and connects with those this
// one talks to.
func (m *member) join(ctx context.Context) error {
	cfg, network := &m.cfg, &m.cfg.Job.Network
	who := coord.JoinConfig{
		Address: cfg.Address, Token: cfg.Token, Rank: cfg.Rank, World: cfg.world(), Role: cfg.role(), Led: cfg.Led,
		Timeout: time.Duration(network.JoinTimeout) + 5*time.Second, State: m.board.Calls,
	}
	if err := m.plan(&who); err != nil {
		return err
	}
	address, err := launch.DataAddress(ctx, network.Kind, cfg.Address)
	if err != nil {
		return fmt.Errorf("rank %d: cannot listen for data: %w", cfg.Rank, err)
	}
	m.joined, err = crew.Join(ctx, crew.Config{
		Coord: who, Network: network.Kind, Address: address, Generation: uint32(cfg.Attempt) + 1, Checksum: network.Checksum,
		Timeout: time.Duration(network.JoinTimeout), Peers: m.peers(), Check: m.checkHosts, Logger: cfg.Logger,
	})
	if abort, ok := errors.AsType[*coord.AbortError](err); ok {
		return abort
	} else if err != nil {
		return fmt.Errorf("rank %d: cannot join the job: %w", cfg.Rank, err)
	}
	m.session, m.endpoint = m.joined.Session, m.joined.Endpoint
	m.report = m.session.Progress
	if cfg.role() == "worker" {
		// The session's context ends with ctx, and when another rank fails.
		if err := m.openStreams(m.session.Context(), streamAddress(network.Kind, address)); err != nil { //nolint:contextcheck // it is made from ctx
			return m.session.Fail(err)
		}
	}
	return nil
}

// checkHosts looks at where the ranks are, now that all have joined. Unix sockets between
// hosts are an error: they cannot work. Workers that are elsewhere than network.hosts says
// are not, since results do not depend on it: rank 0 warns that algorithms were chosen
// for other machines.
func (m *member) checkHosts(peers []coord.Peer) error {
	for _, p := range peers {
		if m.cfg.Job.Network.Kind == "unix" && p.Host != peers[0].Host {
			return &job.FieldError{Field: "network.kind", Fix: fmt.Sprintf(
				"unix sockets do not reach from %s (rank %d) to %s (rank %d): set network.kind=tcp", peers[0].Host, peers[0].Rank, p.Host, p.Rank)}
		}
	}
	if m.cfg.Rank != 0 {
		return nil
	}
	if text := crew.OtherHosts(m.cfg.Job.Network.Hosts, peers[:m.cfg.Job.Strategy.Workers]); text != "" {
		m.cfg.Logger.Warn(text)
	}
	return nil
}

// peers are the ranks this one talks to: workers to all, servers to workers.
func (m *member) peers() []int {
	peers := []int{}
	for r := range m.cfg.world() {
		if r != m.cfg.Rank && (m.cfg.role() == "worker" || r < m.cfg.Job.Strategy.Workers) {
			peers = append(peers, r)
		}
	}
	return peers
}

// work does this rank's part and fills its report. Either context ends it: that
// of the caller, or that of the session, when another rank failed.
func (m *member) work(ctx context.Context) (*report.Rank, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	//nolint:contextcheck // ctx ends with the session's
	stop := context.AfterFunc(m.session.Context(), func() { cancel(context.Cause(m.session.Context())) })
	defer stop()
	report := &report.Rank{Rank: m.cfg.Rank, Role: m.cfg.role()}
	do := m.serve
	if m.rows != nil {
		do = m.train
	}
	if err := do(ctx, report); err != nil {
		return nil, err
	}
	stats := m.stats()
	report.BytesSent, report.BytesReceived = stats.BytesSent, stats.BytesReceived
	report.MessagesSent, report.MessagesReceived = stats.MessagesSent, stats.MessagesReceived
	report.PeakRSSBytes = rss.Peak()
	return report, m.writeSpans()
}

// writeSpans leaves this rank's spans, on the coordinator's clock, for whoever
// merges them.
func (m *member) writeSpans() error {
	if m.trace == nil {
		return nil
	}
	f, err := os.Create(m.cfg.TraceFile)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	spans := trace.Merge(trace.Part{Spans: m.trace.Spans(), Offset: m.session.ClockOffset})
	return errors.Join(trace.WriteSpans(f, spans), f.Close())
}

func (m *member) close() {
	errs := []error{m.closeStreams()}
	if m.joined != nil && m.failed {
		m.joined.Abort()
	} else if m.joined != nil {
		errs = append(errs, m.joined.Close())
	}
	if m.rows != nil {
		errs = append(errs, m.rows.Close())
	}
	if err := errors.Join(errs...); err != nil {
		m.cfg.Logger.Debug("close", "rank", m.cfg.Rank, "error", err)
	}
}
