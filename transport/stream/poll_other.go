//go:build unix && !linux

package stream

import "runtime"

// pollHangup is for systems that can tell of the peer's end while bytes are unread.
const pollHangup = 0

func yield() { runtime.Gosched() }
