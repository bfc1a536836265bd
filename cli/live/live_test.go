package live

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/gangline/gangline/coord"
)

func head() Head {
	return Head{Job: "ctr", Strategy: "ps, 2 workers, 2 servers", Roles: []string{"worker 0", "worker 1", "server 0", "server 1"}, Workers: 2}
}

// told is a model that has heard.
func told(m model, all ...tea.Msg) model {
	for _, msg := range all {
		next, _ := m.Update(msg)
		m = next.(model)
	}
	return m
}

// plain is a view without styles.
func plain(m model) string {
	var b strings.Builder
	for _, l := range m.lines() {
		for rest := l; rest != ""; {
			before, after, styled := strings.Cut(rest, "\x1b[")
			b.WriteString(before)
			if !styled {
				break
			}
			_, rest, _ = strings.Cut(after, "m")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestView(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := told(newModel(head()))
	if got := plain(m); !strings.Contains(got, "waiting for the first step") || !strings.Contains(got, "not yet") {
		t.Errorf("before anything was heard:\n%s", got)
	}
	m = told(m,
		news{0, at, coord.Progress{Step: 0, Total: 100}},
		news{0, at.Add(10 * time.Second), coord.Progress{Step: 25, Total: 100, Loss: .5, ExamplesPerSecond: 2000, MetricName: "auc", Metric: .75}},
		news{1, at.Add(11 * time.Second), coord.Progress{Step: 24, Total: 100, ExamplesPerSecond: 900, BytesPerSecond: 2.5e6}},
		news{2, at.Add(20 * time.Second), coord.Progress{Step: 49, BytesPerSecond: 12_340_000}},
		news{9, at, coord.Progress{Step: 99}}, // no rank of this run
		news{0, at.Add(20 * time.Second), coord.Progress{Step: 50, Total: 100, Loss: .4, ExamplesPerSecond: 2200}},
	)
	want := `ctr  ps, 2 workers, 2 servers
[====================                    ]  step 50/100   50 %  20s left
loss 0.40000  auc 0.75000 (step 25)  2200 examples/s
rank            step   examples/s      MB/s  heard
worker 0          50         1100       0.0  now
worker 1          24          900       2.5  9s ago
server 0          49            -      12.3  now
server 1           -            -         -  not yet
`
	if got := plain(m); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	// A restart begins anew: its time is not that of the steps before.
	m = told(m, news{0, at.Add(30 * time.Second), coord.Progress{Step: 20, Total: 100}}, news{0, at.Add(31 * time.Second), coord.Progress{Step: 30, Total: 100}})
	if got := plain(m); !strings.Contains(got, " 7s left") {
		t.Errorf("after a restart:\n%s", got)
	}
	next, cmd := m.Update(finish{})
	if cmd == nil || next.(model).View().Content != "" {
		t.Error("at the end something is left, or it does not end")
	}
}

// At every size, no line is wider than the terminal and the table leaves a line
// free; nothing panics.
func TestSizes(t *testing.T) {
	h := head()
	for i := range 60 {
		h.Roles = append(h.Roles, fmt.Sprintf("server %d", i+2))
	}
	h.Job = "a job with a name as long as only names of jobs can be, and then some more of it"
	at := time.Now()
	for _, width := range []int{1, 2, 5, 10, 20, 40, 79, 80, 200} {
		for _, height := range []int{1, 2, 3, 5, 10, 24, 100} {
			m := told(newModel(h), tea.WindowSizeMsg{Width: width, Height: height},
				news{0, at, coord.Progress{Step: 1, Total: 1e12, Loss: 1e6, ExamplesPerSecond: 1e9, MetricName: "auc", Metric: .5}},
				news{0, at.Add(time.Hour), coord.Progress{Step: 2, Total: 1e12, Loss: 1e6, ExamplesPerSecond: 1e9}})
			lines := m.lines()
			if len(lines) > max(1, height-1) {
				t.Errorf("%d by %d: %d lines", width, height, len(lines))
			}
			for _, l := range lines {
				if lipgloss.Width(l) > width {
					t.Errorf("%d by %d: %q is %d wide", width, height, l, lipgloss.Width(l))
				}
			}
		}
	}
	m := told(newModel(h), tea.WindowSizeMsg{Width: 80, Height: 24})
	if got := plain(m); !strings.Contains(got, "and ") || !strings.Contains(got, "more") {
		t.Errorf("64 ranks on 24 lines:\n%s", got)
	}
	if m = told(m, tea.WindowSizeMsg{}); m.width != 80 || m.height != 24 {
		t.Error("a terminal without a size is one")
	}
}

// safe is a buffer for several goroutines.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// What is printed comes out in order and whole, the cursor is shown again, and after
// the end lines go straight through.
func TestTable(t *testing.T) {
	var out safe
	table := start(&out, head(), time.Minute, tea.WithWindowSize(80, 24))
	for i := range 200 {
		table.Progress(0, coord.Progress{Step: int64(i), Total: 200, Loss: .5})
		fmt.Fprintf(table, "line %d.\n", i)
	}
	fmt.Fprint(table, "half ")
	fmt.Fprint(table, "a line")
	if err := table.End(); err != nil {
		t.Fatal(err)
	}
	if err := table.End(); err != nil {
		t.Error(err)
	}
	fmt.Fprint(table, "after\n")
	got, at := out.String(), 0
	for i := range 200 {
		next := strings.Index(got[at:], fmt.Sprintf("line %d.", i))
		if next < 0 {
			t.Fatalf("line %d is not there, or not in order", i)
		}
		at += next
	}
	if !strings.Contains(got[at:], "half a line") || !strings.HasSuffix(got, "after\n") {
		t.Errorf("the end is %q", got[max(0, len(got)-100):])
	}
	if hidden, shown := strings.LastIndex(got, "\x1b[?25l"), strings.LastIndex(got, "\x1b[?25h"); hidden >= 0 && shown < hidden {
		t.Error("the cursor stays hidden")
	}
}

// stuck is a terminal that takes nothing.
type stuck struct{ release chan struct{} }

func (s stuck) Write(p []byte) (int, error) {
	<-s.release
	return len(p), nil
}

// A terminal that takes nothing holds nobody up: news and lines are dropped, and the
// end comes.
func TestStuckTerminal(t *testing.T) {
	s := stuck{make(chan struct{})}
	table := start(s, head(), time.Millisecond, tea.WithWindowSize(80, 24))
	for i := range 5 * queueMax {
		table.Progress(1, coord.Progress{Step: int64(i)})
		fmt.Fprintf(table, "line %d\n", i)
	}
	if err := table.End(); err == nil || !strings.Contains(err.Error(), "took nothing") {
		t.Errorf("%v", err)
	}
	table.mu.Lock()
	if table.dropped == 0 {
		t.Error("nothing was dropped")
	}
	table.mu.Unlock()
	close(s.release)
	<-table.ended
}
