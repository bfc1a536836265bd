//go:build unix

package launch

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangline/gangline/coord"
)

// meetAll lets all ranks of a world meet in a place, join and be done.
func meetAll(t *testing.T, p Place) {
	t.Helper()
	errs := make([]error, p.World)
	var running sync.WaitGroup
	for rank := range p.World {
		running.Go(func() {
			p := p
			p.Rank = rank
			errs[rank] = meetOne(t.Context(), p)
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func meetOne(ctx context.Context, p Place) (err error) {
	p, c, err := Meet(ctx, p, coord.ServerConfig{JoinTimeout: 20 * time.Second})
	if err != nil {
		return err
	}
	if c != nil {
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	s, err := coord.Join(ctx, coord.JoinConfig{Address: p.Address, Token: p.Token, Rank: p.Rank, World: p.World, Digest: "d", Led: true})
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Done(ctx, nil)
}

// TestMeetInPrivate is that ranks meet in a directory of which nothing is left, also
// where one that was killed has left all it had.
func TestMeetInPrivate(t *testing.T) {
	for _, stale := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "place")
		if stale {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketFile), Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			ln.SetUnlinkOnClose(false)
			ln.Close()
			for _, name := range []string{tokenFile, lockFile} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("an old one"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		meetAll(t, Place{World: 3, Private: dir})
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("stale %t: the place is still there: %v", stale, err)
		}
	}
}

// TestMeetRefuses is that a place which others can enter is none, and that two jobs
// do not meet in one.
func TestMeetRefuses(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Meet(t.Context(), Place{World: 2, Private: open}, coord.ServerConfig{}); err == nil || !strings.Contains(err.Error(), "only this user can enter") {
		t.Errorf("in an open directory: %v", err)
	}
	_, _, err := Meet(t.Context(), Place{Rank: 1, World: 2, Private: open}, coord.ServerConfig{JoinTimeout: time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "rank 0 did not come within 1ms") || !strings.Contains(err.Error(), "only this user can enter") {
		t.Errorf("rank 1 in an open directory: %v", err)
	}

	held := filepath.Join(t.TempDir(), "held")
	_, c, err := Meet(t.Context(), Place{World: 2, Private: held}, coord.ServerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Meet(t.Context(), Place{World: 2, Private: held}, coord.ServerConfig{}); err == nil || !strings.Contains(err.Error(), "another rank 0 is there") {
		t.Errorf("a second rank 0: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(held); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the place is still there: %v", err)
	}
}

// TestMeetByAddress is the same over the network.
func TestMeetByAddress(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	ln.Close()
	meetAll(t, Place{World: 3, Address: address, Token: "ssssssss"})
}
