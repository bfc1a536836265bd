package live

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/gangline/gangline/coord"
)

// Head says what run a table is of.
type Head struct {
	Job string
	// Strategy is shown as it is: "ps, 2 workers, 2 servers".
	Strategy string
	// Roles has a name for every rank: "worker 0", "server 1".
	Roles []string
	// Workers is how many of the ranks are workers; they come first.
	Workers int
}

// news is what a rank says of itself.
type news struct {
	rank int
	at   time.Time
	coord.Progress
}

// finish asks the table to take itself away and end.
type finish struct{}

// rank is what is known of one.
type rank struct {
	heard time.Time // zero: nothing yet
	step  int64
	rate  float64 // examples/s of its own
	bytes float64 // payload a second
}

// model is the table: what was heard last, and how it looks. It is pure: time
// comes with the messages.
type model struct {
	head          Head
	width, height int
	ranks         []rank
	last          coord.Progress // of rank 0
	metric        string         // name and value of the last test
	start         time.Time      // when rank 0 was first heard of, at step first
	first         int64
	now           time.Time
	done          bool
}

// Least size that is assumed of a terminal that says nothing.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

func newModel(h Head) model {
	return model{head: h, width: defaultWidth, height: defaultHeight, ranks: make([]rank, len(h.Roles)), first: -1}
}

// Init implements tea.Model.
func (m model) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if msg.Width > 0 && msg.Height > 0 {
			m.width, m.height = msg.Width, msg.Height
		}
	case news:
		return m.hear(msg), nil
	case finish:
		m.done = true
		return m, tea.Quit
	}
	return m, nil
}

// hear takes news of a rank.
func (m model) hear(n news) model {
	if n.rank < 0 || n.rank >= len(m.ranks) {
		return m
	}
	m.now = n.at
	ranks := append([]rank(nil), m.ranks...) // models are values
	r := &ranks[n.rank]
	r.heard, r.step, r.rate, r.bytes = n.at, n.Step, n.ExamplesPerSecond, n.BytesPerSecond
	m.ranks = ranks
	if n.rank != 0 {
		return m
	}
	r.rate /= float64(max(m.head.Workers, 1)) // rank 0 speaks for all; parts are equal
	if m.first < 0 || n.Step < m.last.Step {  // a restart begins anew
		m.start, m.first = n.at, n.Step
	}
	if n.MetricName != "" {
		m.metric = fmt.Sprintf("%s %.5f (step %d)", n.MetricName, n.Metric, n.Step)
	}
	if n.Loss == 0 { // nothing was trained since the last message
		n.Loss = m.last.Loss
	}
	m.last = n.Progress
	return m
}

// left is the time that remains, by the steps so far; 0 if that cannot be told.
func (m model) left() time.Duration {
	done := m.last.Step - m.first
	if m.first < 0 || done <= 0 || m.last.Total <= m.last.Step {
		return 0
	}
	s := m.now.Sub(m.start).Seconds() / float64(done) * float64(m.last.Total-m.last.Step)
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}

// View implements tea.Model.
func (m model) View() tea.View {
	if m.done {
		return tea.NewView("")
	}
	return tea.NewView(strings.Join(m.lines(), "\n"))
}

// lines are those of the table, none wider than the terminal, and no more than fit
// with a line to spare for what others print.
func (m model) lines() []string {
	bold, faint := lipgloss.NewStyle().Bold(true), lipgloss.NewStyle().Faint(true)
	lines := []string{bold.Render(m.head.Job) + "  " + m.head.Strategy, m.bar()}
	if numbers := m.numbers(); numbers != "" {
		lines = append(lines, numbers)
	}
	if room := m.height - len(lines) - 2; room > 0 && len(m.ranks) > 1 {
		lines = append(lines, faint.Render(fmt.Sprintf(rowForm, "rank", "step", "examples/s", "MB/s", "heard")))
		shown := len(m.ranks)
		if shown > room {
			shown = room - 1
		}
		for i := range shown {
			lines = append(lines, m.row(i))
		}
		if more := len(m.ranks) - shown; more > 0 {
			lines = append(lines, faint.Render(fmt.Sprintf("and %d more", more)))
		}
	}
	lines = lines[:min(len(lines), max(1, m.height-1))]
	fit := lipgloss.NewStyle().MaxWidth(max(m.width, 1))
	for i, l := range lines {
		lines[i] = fit.Render(l)
	}
	return lines
}

// bar shows how much is done.
func (m model) bar() string {
	if m.first < 0 {
		return "waiting for the first step"
	}
	text := fmt.Sprintf("step %d", m.last.Step)
	if m.last.Total <= 0 {
		return text
	}
	share := min(1, float64(m.last.Step)/float64(m.last.Total))
	text = fmt.Sprintf("step %d/%d  %3.0f %%", m.last.Step, m.last.Total, math.Floor(100*share))
	if left := m.left(); left > 0 {
		text += fmt.Sprintf("  %s left", left)
	}
	room := min(40, m.width-len(text)-4)
	if room < 8 {
		return text
	}
	full := int(share * float64(room))
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", room-full) + "]  " + text
}

// numbers are loss, metric and speed; empty before there are any.
func (m model) numbers() string {
	var parts []string
	if m.last.Loss > 0 {
		parts = append(parts, fmt.Sprintf("loss %.5f", m.last.Loss))
	}
	if m.metric != "" {
		parts = append(parts, m.metric)
	}
	if m.last.ExamplesPerSecond > 0 {
		parts = append(parts, fmt.Sprintf("%.0f examples/s", m.last.ExamplesPerSecond))
	}
	return strings.Join(parts, "  ")
}

// rowForm is how a rank's row is set.
const rowForm = "%-10s %9s %12s %9s  %s"

// row is what is known of a rank: the steps that a worker has done or a server has
// applied, its examples, which servers have none of, and its traffic.
func (m model) row(i int) string {
	r, name := m.ranks[i], m.head.Roles[i]
	if r.heard.IsZero() {
		return fmt.Sprintf(rowForm, name, "-", "-", "-", "not yet")
	}
	rate := "-"
	if i < m.head.Workers {
		rate = fmt.Sprintf("%.0f", r.rate)
	}
	heard := "now"
	if ago := m.now.Sub(r.heard).Truncate(time.Second); ago > quiet {
		heard = fmt.Sprintf("%s ago", ago)
	}
	return fmt.Sprintf(rowForm, name, strconv.FormatInt(r.step, 10), rate, fmt.Sprintf("%.1f", r.bytes/1e6), heard)
}

// quiet is how long a rank may say nothing before its row tells.
const quiet = 3 * time.Second
