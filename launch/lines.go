package launch

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"sync"
)

// Limits on what is kept of a rank's output.
const (
	maxLine    = 16 << 10 // bytes; longer lines are cut in pieces
	tailLines  = 12
	crashLines = 12
	keptLine   = 400 // bytes of a line that is kept
)

// together writes whole lines of several ranks to one writer.
type together struct {
	mu sync.Mutex
	w  io.Writer
}

func (t *together) line(prefix string, line []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := t.w.Write(slices.Concat([]byte(prefix), line, []byte{'\n'}))
	return err
}

// lines takes the output of one rank. It passes it on line by line and keeps
// the last lines; of a Go program that crashes, the first lines of the crash,
// which say more than the end of a stack.
type lines struct {
	out    *together
	prefix string
	crash  *regexp.Regexp

	mu      sync.Mutex
	partial []byte
	tail    []string
	crashed []string
	sinkErr error
}

func newLines(out *together, name string) *lines {
	return &lines{out: out, prefix: "[" + name + "] ", crash: regexp.MustCompile(`^(panic: |fatal error: |SIG[A-Z]+: )`)}
}

// Write implements io.Writer. It takes all of p even if the sink fails, so that
// a rank never dies of its launcher's closed stderr.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		line, rest, whole := bytes.Cut(p, []byte{'\n'})
		room := maxLine - len(l.partial)
		if len(line) > room {
			line, rest, whole = line[:room], p[room:], true
		}
		l.partial, p = append(l.partial, line...), rest
		if whole {
			l.emit()
		}
	}
	return n, nil
}

// flush passes on a last line that has no end.
func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) > 0 {
		l.emit()
	}
}

func (l *lines) emit() {
	line := bytes.TrimSuffix(l.partial, []byte{'\r'})
	if l.sinkErr == nil {
		l.sinkErr = l.out.line(l.prefix, line)
	}
	kept := string(line[:min(len(line), keptLine)])
	if len(l.crashed) < crashLines && (len(l.crashed) > 0 || l.crash.MatchString(kept)) {
		l.crashed = append(l.crashed, kept)
	}
	if len(l.tail) == tailLines {
		l.tail = slices.Delete(l.tail, 0, 1)
	}
	l.tail = append(l.tail, kept)
	l.partial = l.partial[:0]
}

// last returns the lines that say most, and whether they are a crash.
func (l *lines) last() (kept []string, crash bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.crashed) > 0 {
		return slices.Clone(l.crashed), true
	}
	return slices.Clone(l.tail), false
}
