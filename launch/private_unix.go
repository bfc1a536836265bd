//go:build unix

package launch

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A private place is a directory that nobody but this user can enter. In it are a
// lock that rank 0 holds, a token and a socket; the socket comes last, so that who
// can call finds the token of who answers. What a killed rank 0 has left answers
// nobody, and the next one takes it over.

const (
	lockFile   = "lock"
	tokenFile  = "token"
	socketFile = "socket"
	// socketPathMax is the longest path of a socket that every system takes.
	socketPathMax = 100
	enterAgain    = 8
)

// privateDir names the directory of a job: in one that its launcher keeps, or among
// temporary files. Long names are hashed, since paths of sockets are short.
func privateDir(get func(string) string, kept, job string) string {
	sum := sha256.Sum256([]byte(job))
	name := hex.EncodeToString(sum[:8])
	if dir := filepath.Join(kept, "gangline-"+name); filepath.IsAbs(kept) && len(dir)+len("/"+socketFile) <= socketPathMax {
		return dir
	}
	base := get("TMPDIR")
	if base == "" {
		base = "/tmp"
	}
	return filepath.Join(base, "gangline-"+strconv.Itoa(os.Geteuid())+"-"+name)
}

// checkPrivate refuses a directory that others can enter or have made.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !ok || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is not a directory that only this user can enter: remove it", dir)
	}
	return nil
}

// meeting is a private place that rank 0 holds.
type meeting struct {
	dir      string
	lock     *os.File
	token    string
	listener net.Listener
}

func (m *meeting) address() string { return "unix:" + filepath.Join(m.dir, socketFile) }

// hold opens a private place for others.
func hold(dir string) (*meeting, error) {
	lock, err := enter(dir)
	for range enterAgain {
		if !errors.Is(err, os.ErrNotExist) { // who held it has just removed it
			break
		}
		lock, err = enter(dir)
	}
	if err != nil {
		return nil, err
	}
	m := &meeting{dir: dir, lock: lock, token: rand.Text()}
	socket := filepath.Join(dir, socketFile)
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(err, m.end())
	}
	if err := os.WriteFile(filepath.Join(dir, tokenFile), []byte(m.token), 0o600); err != nil {
		return nil, errors.Join(err, m.end())
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, errors.Join(err, m.end())
	}
	ln.SetUnlinkOnClose(false) // end removes it, while the place is ours
	m.listener = ln
	return m, nil
}

// enter makes the directory, if need be, and locks it.
func enter(dir string) (*os.File, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if err := checkPrivate(dir); err != nil {
		return nil, err
	}
	return takeLock(filepath.Join(dir, lockFile))
}

// takeLock locks a file that nobody can remove while it is locked.
func takeLock(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return nil, errors.Join(fmt.Errorf("another rank 0 is there: is a job with the same address running? (%w)", err), f.Close())
		}
		mine, err := f.Stat()
		there, gone := os.Stat(path)
		if err == nil && gone == nil && os.SameFile(mine, there) {
			return f, nil
		}
		f.Close() // whoever held it has removed it since we opened it
	}
}

// end removes what is in the place, and the place. Connections stay.
func (m *meeting) end() error {
	if m == nil || m.lock == nil {
		return nil
	}
	var errs []error
	for _, name := range []string{socketFile, tokenFile, lockFile, ""} {
		if err := os.Remove(filepath.Join(m.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
			errs = append(errs, err)
		}
	}
	errs = append(errs, m.lock.Close())
	m.lock = nil
	return errors.Join(errs...)
}

// look returns where rank 0 listens and its token, if it is there.
func look(ctx context.Context, dir string) (address, token string, err error) {
	if err := checkPrivate(dir); err != nil {
		return "", "", err
	}
	socket := filepath.Join(dir, socketFile)
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return "", "", err
	}
	defer c.Close()
	text, err := os.ReadFile(filepath.Join(dir, tokenFile))
	if err == nil && strings.TrimSpace(string(text)) == "" {
		err = errors.New("the token is empty")
	}
	return "unix:" + socket, string(text), err
}
