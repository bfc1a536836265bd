package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// What a member tells the others: a record of recordSize bytes.
//
//	offset  bytes  field
//	     0      1  version
//	     1      1  path that its config allows
//	     2      1  1 if it can share memory
//	     3      1  1 if it wants checksums over tcp
//	     4      4  rank
//	     8     32  host, all 0 if unknown
//	    40    128  processors it may run on, a bit each
//	   168    160  address for tcp: length and text, 0 if none
//	   328    184  address for unix sockets
const (
	recordSize    = 512
	recordVersion = 1

	hostAt, cpusAt, tcpAt, unixAt = 8, 40, 168, 328
)

// processors is a set of the processors of a host.
type processors [128]byte

func (p *processors) count() int {
	var n int
	for _, b := range p {
		n += bits.OnesCount8(b)
	}
	return n
}

// hostID tells hosts apart: two processes with the same can share memory and
// reach each other by unix sockets. Zero is unknown, the same as none.
type hostID [32]byte

// record is what a member tells.
type record struct {
	rank      int
	path      Path
	shm       bool
	sums      bool
	host      hostID
	cpus      processors
	tcp, unix string // where it listens, empty if it does not
}

// errRecord: what a member told makes no sense.
var errRecord = errors.New("impossible record")

func (r *record) encode() ([]byte, error) {
	b := make([]byte, recordSize)
	b[0], b[1] = recordVersion, byte(r.path)
	if r.shm {
		b[2] = 1
	}
	if r.sums {
		b[3] = 1
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(r.rank))
	copy(b[hostAt:], r.host[:])
	copy(b[cpusAt:], r.cpus[:])
	for at, text := range map[int]string{tcpAt: r.tcp, unixAt: r.unix} {
		if most := addressRoom(at) - 1; len(text) > most {
			return nil, fmt.Errorf("address %q has %d bytes: want at most %d", text, len(text), most)
		}
		b[at] = byte(len(text))
		copy(b[at+1:], text)
	}
	return b, nil
}

func addressRoom(at int) int {
	if at == tcpAt {
		return unixAt - tcpAt
	}
	return recordSize - unixAt
}

func decodeRecord(b []byte) (record, error) {
	if len(b) != recordSize || b[0] != recordVersion {
		return record{}, fmt.Errorf("%w: version %d of streams, this is %d: run the same program everywhere", errRecord, b[0], recordVersion)
	}
	r := record{path: Path(b[1]), shm: b[2] == 1, sums: b[3] == 1, rank: int(binary.LittleEndian.Uint32(b[4:]))}
	copy(r.host[:], b[hostAt:])
	copy(r.cpus[:], b[cpusAt:])
	if r.path > TCP || b[2] > 1 || b[3] > 1 {
		return record{}, fmt.Errorf("%w: %v", errRecord, r.path)
	}
	for _, a := range []struct {
		at   int
		text *string
	}{{tcpAt, &r.tcp}, {unixAt, &r.unix}} {
		n := int(b[a.at])
		if n >= addressRoom(a.at) {
			return record{}, fmt.Errorf("%w: address of %d bytes", errRecord, n)
		}
		*a.text = string(b[a.at+1 : a.at+1+n])
	}
	return r, nil
}

// sameHost reports whether two members can share memory or a unix socket.
func sameHost(a, b *record) bool { return a.host == b.host && a.host != hostID{} }

// choose returns how the bytes of a pair cross. Both members and all others
// come to the same answer.
func choose(a, b *record) (Path, error) {
	if a.path != b.path {
		return 0, fmt.Errorf("rank %d allows path %v, rank %d %v: it must be the same", a.rank, a.path, b.rank, b.path)
	}
	if a.sums != b.sums {
		with, without := a.rank, b.rank
		if b.sums {
			with, without = b.rank, a.rank
		}
		return 0, fmt.Errorf("rank %d wants checksums, rank %d none: it must be the same", with, without)
	}
	local, shared := sameHost(a, b) && a.unix != "" && b.unix != "", a.shm && b.shm
	switch {
	case local && shared && (a.path == Auto || a.path == Shm):
		return Shm, nil
	case local && (a.path == Auto || a.path == Unix):
		return Unix, nil
	case a.tcp != "" && b.tcp != "" && (a.path == Auto || a.path == TCP):
		return TCP, nil
	}
	why := "they are on different hosts"
	if sameHost(a, b) {
		why = "a system of theirs does not have it"
	}
	return 0, fmt.Errorf("ranks %d (host %v) and %d (host %v) cannot use path %v: %s; allow path auto or tcp",
		a.rank, a.host, b.rank, b.host, a.path, why)
}

// String returns enough of a host's id to tell a few hosts apart.
func (h hostID) String() string {
	if h == (hostID{}) {
		return "unknown"
	}
	return fmt.Sprintf("%x", h[:4])
}

// checkAll fails if some pair of the group has no path, on all members alike:
// else those that are not of the pair would wait for it in vain. The path is the
// same for all, so a member can fail only with the first one, or with all.
func checkAll(all []record) error {
	for i := range all {
		if _, err := choose(&all[0], &all[i]); i > 0 && err != nil {
			return err
		}
	}
	return nil
}

// anySocket reports whether some pair of the group, of which each has a path, is on a
// socket: then one with the first member is. All members come to the same answer.
func anySocket(all []record) bool {
	for i := 1; i < len(all); i++ {
		if p, _ := choose(&all[0], &all[i]); p != Shm {
			return true
		}
	}
	return false
}

// room reports whether the host of member i has a processor for each member on it.
func room(all []record, i int) bool {
	var members int
	var cpus processors
	for j := range all {
		if i == j || sameHost(&all[i], &all[j]) {
			members++
			for k := range cpus {
				cpus[k] |= all[j].cpus[k]
			}
		}
	}
	return members <= cpus.count()
}
