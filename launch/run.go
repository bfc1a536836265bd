package launch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/gangline/gangline/coord"
)

// Run starts a coordinator and all ranks, and returns when all have ended: nil
// if every rank reported that it is done, a *RankError that names the rank if
// the last attempt failed. If ctx ends, all ranks are ended, and the error wraps
// the cause of ctx. The outcome holds in any case what is known.
func Run(ctx context.Context, cfg Config) (Outcome, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Generation: cfg.Coordinator.Generation}
	for n := 0; ; n++ {
		a := &attempt{cfg: &cfg, number: n, generation: cfg.Coordinator.Generation + uint64(n)}
		err := a.run(ctx)
		out.Generation, out.Reports, out.Processes = a.generation, a.reports, a.summaries()
		if err == nil {
			return out, nil
		}
		if ctx.Err() != nil {
			return out, fmt.Errorf("launch: interrupted: %w", context.Cause(ctx))
		}
		failed, ok := errors.AsType[*RankError](err)
		if !ok || a.complete || failed.final() || n >= cfg.Restart.Max {
			return out, err
		}
		reason := oneLine(failed.Cause.Text)
		out.Restarts = append(out.Restarts, Restarted{Attempt: n, Generation: a.generation, Reason: reason})
		cfg.Logger.Warn("starting all ranks again", "because", reason, "restart", n+1, "of", cfg.Restart.Max)
	}
}

// attempt is one generation: its coordinator and its processes.
type attempt struct {
	cfg        *Config
	number     int
	generation uint64

	server    *coord.Server
	processes []*process
	reports   map[int][]byte
	complete  bool // all ranks were done

	spawned chan error // what start returned, once all have been started
}

// run returns when all processes have ended and the coordinator is closed.
func (a *attempt) run(ctx context.Context) error {
	var listen net.ListenConfig
	ln, err := listen.Listen(ctx, "tcp", a.cfg.Address)
	if err != nil {
		return fmt.Errorf("launch: coordinator: %w", err)
	}
	config := a.cfg.Coordinator
	config.Generation, config.Token = a.generation, rand.Text()
	if a.server, err = coord.NewServer(config); err != nil {
		ln.Close()
		return fmt.Errorf("launch: coordinator: %w", err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := a.server.Serve(ln); err != nil {
			a.server.Stop(err.Error())
		}
	})
	defer running.Wait()
	defer a.server.Close()

	a.prepare(ln.Addr().String(), config.Token)
	a.spawned = make(chan error, 1)
	running.Go(func() { a.start(ctx) })

	outcome, err := a.server.Wait(ctx)
	if _, verdict := errors.AsType[*coord.AbortError](err); err != nil && !verdict {
		a.server.Stop(fmt.Sprintf("interrupted: %v", err))
		outcome, err = a.server.Wait(context.WithoutCancel(ctx))
	}
	a.reports, a.complete = outcome.Reports, err == nil
	startErr := <-a.spawned
	a.endAll()
	if startErr != nil {
		return startErr
	}
	return a.judge(err)
}

// prepare makes the processes, without starting them.
func (a *attempt) prepare(address, token string) {
	out := &together{w: a.cfg.Stderr}
	var apart *together
	if a.cfg.Stdout != nil {
		apart = &together{w: a.cfg.Stdout}
	}
	for rank := range a.cfg.World {
		place := Place{Rank: rank, World: a.cfg.World, Address: address, Token: token, Attempt: a.number}
		a.processes = append(a.processes, newProcess(a.cfg, place, out, apart))
	}
}

// start starts the processes and stays until all have ended, on one thread: see
// process.start.
func (a *attempt) start(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var waits sync.WaitGroup
	defer waits.Wait()
	var failed error
	for _, p := range a.processes {
		if failed == nil && ctx.Err() == nil {
			failed = p.start()
		}
		if p.pid == 0 {
			close(p.done)
			continue
		}
		a.cfg.Logger.Info("started "+p.name, "rank", p.rank, "pid", p.pid, "attempt", a.number)
		waits.Go(func() {
			p.wait()
			a.server.Exited(p.rank, p.sentence())
		})
	}
	if failed != nil {
		a.server.Stop(failed.Error())
	}
	a.spawned <- failed
}

// endAll waits for the processes to end by themselves, for Grace, and kills the rest.
// After half of it their lifelines are cut: a rank that has not joined yet, because it
// still reads its rows, hears in no other way that there is nothing to join.
func (a *attempt) endAll() {
	if a.await(a.cfg.Grace / 2) {
		return
	}
	for _, p := range a.processes {
		p.hangUp()
	}
	if !a.await(a.cfg.Grace / 2) {
		for _, p := range a.processes {
			if p.kill() {
				a.cfg.Logger.Warn("killed "+p.name+": it did not end by itself", "rank", p.rank, "pid", p.pid, "after", a.cfg.Grace)
			}
		}
	}
	for _, p := range a.processes {
		<-p.done
	}
}

// await waits so long for all processes to end, and reports whether they did.
func (a *attempt) await(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for _, p := range a.processes {
		select {
		case <-p.done:
		case <-timer.C:
			return false
		}
	}
	return true
}

// judge makes the error of the attempt from the coordinator's verdict and from
// how the processes ended.
func (a *attempt) judge(verdict error) error {
	cause, aborted := errors.AsType[*coord.AbortError](verdict)
	if !aborted {
		return a.afterwards()
	}
	e := &RankError{Cause: cause}
	if cause.Rank != coord.NoRank {
		p := a.processes[cause.Rank]
		if s := p.summary(); cause.Kind == coord.StreamLost && s.PID != 0 && !s.Killed {
			// Its end came too late for the ranks to hear of it, but it says more.
			e.Cause = &coord.AbortError{Rank: cause.Rank, Kind: coord.ProcessExited, Text: p.sentence() + " before it was done"}
		}
		e.Name, e.Request = p.name, p.request()
		if cause.Kind != coord.Failed && cause.Kind != coord.Mismatch {
			e.Lines, _ = p.output.last()
		}
	}
	for _, p := range a.processes {
		if p.rank != cause.Rank && p.diedAlone() {
			e.Also = append(e.Also, p.sentence())
		}
	}
	return e
}

// afterwards returns an error if a process failed although all ranks were done.
// One that a signal ended had nothing left to do: that is only worth a warning.
func (a *attempt) afterwards() error {
	for _, p := range a.processes {
		s := p.summary()
		if s.Killed || s.ExitStatus == 0 {
			continue
		}
		lines, crash := p.output.last()
		if s.ExitStatus == -1 && s.PID != 0 && !crash {
			a.cfg.Logger.Warn(p.sentence() + ", after all ranks were done")
			continue
		}
		return &RankError{Name: p.name, Lines: lines, Cause: &coord.AbortError{
			Rank: p.rank, Kind: coord.ProcessExited,
			Text: p.sentence() + ", after all ranks were done",
		}}
	}
	return nil
}

func (a *attempt) summaries() []Process {
	var all []Process
	for _, p := range a.processes {
		all = append(all, p.summary())
	}
	return all
}

// oneLine is for logs.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }
