// Package live shows a run as a table on a terminal: loss, metric, speed, the time
// that is left, and a row for every rank. What others print passes above it.
//
// The table never holds the run up: news and lines go through a bounded queue, and
// what does not fit is dropped and counted. It reads no keys, so that an interrupt
// is one; it hides the cursor and shows it again at its end.
package live

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/gangline/gangline/coord"
)

// Limits of a table.
const (
	// queueMax is how many messages wait for the terminal.
	queueMax = 1024
	// patience is how long End waits for a terminal that takes nothing.
	patience = 2 * time.Second
	// framesPerSecond is how often the table is drawn at most.
	framesPerSecond = 10
)

// Table is a table on a terminal. Its methods may be called from any goroutine.
type Table struct {
	w        io.Writer
	program  *tea.Program
	ended    chan struct{} // the program has
	sent     sync.WaitGroup
	patience time.Duration

	mu      sync.Mutex
	queue   chan tea.Msg // nil: the table has ended
	part    []byte       // of a line that is not whole yet
	dropped int
	err     error
}

// Start draws a table on a terminal. The caller ends it.
func Start(w io.Writer, h Head) *Table { return start(w, h, patience) }

func start(w io.Writer, h Head, patience time.Duration, options ...tea.ProgramOption) *Table {
	t := &Table{w: w, ended: make(chan struct{}), patience: patience, queue: make(chan tea.Msg, queueMax)}
	t.program = tea.NewProgram(newModel(h), append([]tea.ProgramOption{
		tea.WithOutput(w), tea.WithInput(nil), tea.WithoutSignalHandler(), tea.WithFPS(framesPerSecond),
	}, options...)...)
	go func() {
		defer close(t.ended)
		_, err := t.program.Run()
		t.mu.Lock()
		t.err = err
		t.mu.Unlock()
	}()
	queue := t.queue
	t.sent.Go(func() {
		for m := range queue {
			t.program.Send(m) // waits for the program, and for nothing once that has ended
		}
	})
	return t
}

// Progress takes news of a rank. It never waits.
func (t *Table) Progress(rank int, p coord.Progress) {
	t.put(news{rank: rank, at: time.Now(), Progress: p})
}

// put queues a message, or drops it.
func (t *Table) put(m tea.Msg) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.putLocked(m)
}

func (t *Table) putLocked(m tea.Msg) {
	if t.queue == nil {
		return
	}
	select {
	case t.queue <- m:
	default:
		if _, progress := m.(news); !progress { // the next ones say the same
			t.dropped++
		}
	}
}

// Write prints whole lines above the table. It never waits, and what it drops is
// said at the end. After the end of the table it writes as the terminal does.
func (t *Table) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue == nil || t.gone() {
		return t.w.Write(text)
	}
	t.part = append(t.part, text...)
	for {
		line, rest, whole := bytes.Cut(t.part, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		t.putLocked(tea.Println(string(line))())
		t.part = append(t.part[:0], rest...)
	}
}

// gone reports whether the program has ended by itself.
func (t *Table) gone() bool {
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

// End takes the table away and gives the terminal back, with everything printed
// that was to be. A terminal that takes nothing is given up after two seconds. It
// returns what went wrong with drawing; a second call does nothing.
func (t *Table) End() error {
	t.mu.Lock()
	queue := t.queue
	if queue == nil {
		t.mu.Unlock()
		return nil
	}
	if len(t.part) > 0 {
		t.putLocked(tea.Println(string(t.part))())
	}
	t.queue = nil
	close(queue)
	t.mu.Unlock()

	quit := make(chan struct{})
	go func() { // ends with the program, or with the process: its terminal is stuck
		defer close(quit)
		t.sent.Wait()
		t.program.Send(finish{})
		<-t.ended
	}()
	timer := time.NewTimer(t.patience)
	defer timer.Stop()
	select {
	case <-quit:
	case <-timer.C:
		return fmt.Errorf("the terminal took nothing for %v", t.patience)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dropped > 0 {
		fmt.Fprintf(t.w, "%d lines came too fast for the terminal and are not shown\n", t.dropped)
	}
	return t.err
}
