package main

import (
	"io"
	"os"
	"sync"
)

// gate lets this process begin a step for each byte that it can read.
type gate struct {
	path string // "": it is open
	mu   sync.Mutex
	file *os.File
	step int64 // the last that was let in
}

// pass waits until a step may begin. Others of the same step need not wait again.
// Where nothing can be read any more, the gate is open: whoever held it has gone.
func (g *gate) pass(step int64) {
	if g.path == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if step == g.step {
		return
	}
	g.step = step
	if g.file == nil {
		f, err := os.Open(g.path)
		if err != nil {
			panic(err) // there is nobody to return it to, and the job should end
		}
		g.file = f
	}
	if _, err := io.ReadFull(g.file, make([]byte, 1)); err != nil {
		g.path = ""
	}
}
