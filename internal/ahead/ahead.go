// Package ahead reads a stream in a goroutine of its own, some pieces ahead of who
// uses it: unpacking and waiting for a network then cost the user no time.
package ahead

import "io"

// piece is a part of the stream, or how it ended.
type piece struct {
	buf []byte
	err error
}

// Reader is an io.ReadCloser for one goroutine.
type Reader struct {
	in         io.ReadCloser
	full, free chan piece
	stop, done chan struct{}
	now        piece
	rest       []byte
}

// New reads in, up to n pieces of some bytes each ahead. Close closes in.
func New(in io.ReadCloser, bytes, n int) *Reader {
	r := &Reader{
		in: in, full: make(chan piece, n), free: make(chan piece, n+1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	for range n + 1 {
		r.free <- piece{buf: make([]byte, bytes)}
	}
	go r.run()
	return r
}

// run fills pieces until the stream ends or Close is called.
func (r *Reader) run() {
	defer close(r.done)
	for {
		var p piece
		select {
		case p = <-r.free:
		case <-r.stop:
			return
		}
		p.buf, p.err = fill(r.in, p.buf[:cap(p.buf)])
		select {
		case r.full <- p:
		case <-r.stop:
			return
		}
		if p.err != nil {
			return
		}
	}
}

// fill reads until buf is full or the stream ends.
func fill(in io.Reader, buf []byte) ([]byte, error) {
	n, idle := 0, 0
	for n < len(buf) {
		k, err := in.Read(buf[n:])
		n += k
		if err != nil {
			return buf[:n], err
		}
		if idle++; k > 0 {
			idle = 0
		}
		if idle == 100 { // as bufio has it
			return buf[:n], io.ErrNoProgress
		}
	}
	return buf, nil
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.now.err != nil {
			return 0, r.now.err
		}
		if r.now.buf != nil {
			r.free <- r.now // there is room: n+1 pieces exist
		}
		r.now = <-r.full
		r.rest = r.now.buf
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close ends the goroutine, waits for it and closes the stream.
func (r *Reader) Close() error {
	close(r.stop)
	<-r.done
	return r.in.Close()
}
