package launch

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/gangline/gangline/coord"
)

// ExitRequest is the exit status of a process whose request was wrong: the job
// file, a flag. Trying again cannot help.
const ExitRequest = 2

// MaxGrace bounds Config.Grace.
const MaxGrace = 5 * time.Second

// lostGrace is how long the coordinator waits for the exit status that explains
// a broken stream.
const lostGrace = 250 * time.Millisecond

// Restart says how often a failed job is started again.
type Restart struct {
	// Max is the number of restarts, 0 for none.
	Max int
}

// Config says what to start.
type Config struct {
	// Exe is the program of every rank.
	Exe string
	// Args are its arguments, without the program's name; nil means none.
	Args func(rank, attempt int) []string
	// Env is what ranks inherit, as KEY=value, usually os.Environ(); the
	// variables of the launch contract are added.
	Env []string
	// Dir is where ranks run; empty means here.
	Dir string
	// World is the number of ranks.
	World int
	// Names calls a rank by what it does: "worker 0", "server 1". nil means "rank 0".
	Names   func(rank int) string
	Restart Restart
	// Grace is how long ranks may take to end once the generation is over,
	// before they are killed; 0 means MaxGrace, which also bounds it.
	Grace time.Duration
	// Stderr takes what ranks write to stderr and stdout, line by line, behind
	// the rank's name. nil discards it.
	Stderr io.Writer
	// Stdout takes what they write to stdout, if that shall go elsewhere.
	Stdout io.Writer
	// Logger takes what is decided, with reasons; nil discards it.
	Logger *slog.Logger
	// Address is where the coordinator listens; empty means 127.0.0.1:0.
	Address string
	// Coordinator holds its limits and callbacks. World, Token and Logger are
	// set by Run; Generation is that of the first attempt, 0 means 1; LostGrace,
	// if 0, is a quarter of a second.
	Coordinator coord.ServerConfig
}

// Restarted tells of one restart.
type Restarted struct {
	// Attempt is the one that failed, from 0, Generation its number.
	Attempt    int
	Generation uint64
	// Reason is why it failed, in one line.
	Reason string
}

// Process is what is left of a rank's process.
type Process struct {
	Rank int
	Name string
	PID  int
	// ExitStatus is -1 if a signal ended it, or if it never started.
	ExitStatus int
	// Killed is set if it was this launcher that killed it.
	Killed bool
	// MaxRSS is the most memory that was resident, in bytes; 0 where the
	// system does not tell.
	MaxRSS int64
}

// Outcome is what is left of a job.
type Outcome struct {
	// Generation is the last one.
	Generation uint64
	// Reports hold what ranks gave to Session.Done in the last generation.
	Reports map[int][]byte
	// Restarts in order.
	Restarts []Restarted
	// Processes of the last generation, by rank.
	Processes []Process
}

// RankError says which rank a job failed with.
type RankError struct {
	// Cause is the coordinator's verdict.
	Cause *coord.AbortError
	// Name of the rank, empty if none is to blame.
	Name string
	// Request is set if its process ended with ExitRequest.
	Request bool
	// Lines are the last it wrote, or the beginning of its panic; empty if it
	// reported its error itself.
	Lines []string
	// Also tells of other processes that ended by a crash or a signal of their
	// own: one of these may be what the rank stumbled over.
	Also []string
}

// Error returns the verdict and, on further lines, what else is known.
func (e *RankError) Error() string {
	var b strings.Builder
	if e.Name != "" && !strings.Contains(e.Cause.Text, e.Name) {
		b.WriteString(e.Name + ": ")
	}
	b.WriteString(e.Cause.Text)
	for _, sentence := range e.Also {
		b.WriteString("\nalso: " + sentence)
	}
	if len(e.Lines) > 0 {
		fmt.Fprintf(&b, "\nlast lines of %s:", e.Name)
		for _, line := range e.Lines {
			b.WriteString("\n  " + line)
		}
	}
	return b.String()
}

// Unwrap returns the verdict.
func (e *RankError) Unwrap() error { return e.Cause }

// final says whether another attempt would end alike.
func (e *RankError) final() bool {
	return e.Request || e.Cause.Kind == coord.Mismatch || e.Cause.Kind == coord.Stopped
}

// withDefaults checks c and fills in what is not set.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Exe == "":
		return c, errors.New("launch: no program to start")
	case c.World < 1 || c.World > coord.MaxWorld:
		return c, fmt.Errorf("launch: world is %d, it must be 1 to %d", c.World, coord.MaxWorld)
	case c.Restart.Max < 0:
		return c, fmt.Errorf("launch: %d restarts", c.Restart.Max)
	}
	if c.Args == nil {
		c.Args = func(int, int) []string { return nil }
	}
	if c.Names == nil {
		c.Names = func(rank int) string { return fmt.Sprintf("rank %d", rank) }
	}
	if c.Grace <= 0 || c.Grace > MaxGrace {
		c.Grace = MaxGrace
	}
	if c.Stderr == nil {
		c.Stderr = io.Discard
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Address == "" {
		c.Address = "127.0.0.1:0"
	}
	c.Coordinator.World, c.Coordinator.Logger = c.World, c.Logger
	if c.Coordinator.Generation == 0 {
		c.Coordinator.Generation = 1
	}
	if c.Coordinator.LostGrace == 0 {
		c.Coordinator.LostGrace = lostGrace
	}
	return c, nil
}
