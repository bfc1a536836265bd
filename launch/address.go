package launch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
)

// DataAddress is where a rank listens for data. Over TCP that is the address from
// which it reaches the coordinator: this host's own name may mean another one to
// the others. Nothing is sent to find it. Ranks that meet at a unix socket are on one
// host.
func DataAddress(ctx context.Context, network, coordinator string) (string, error) {
	switch {
	case network == "tcp" && strings.HasPrefix(coordinator, "unix:"):
		return "127.0.0.1:0", nil
	case network == "tcp":
		var d net.Dialer
		c, err := d.DialContext(ctx, "udp", coordinator)
		if err != nil {
			return "", fmt.Errorf("no way to the coordinator at %s: %w", coordinator, err)
		}
		host, _, err := net.SplitHostPort(c.LocalAddr().String())
		return net.JoinHostPort(host, "0"), errors.Join(err, c.Close())
	case runtime.GOOS == "linux":
		// Linux has unix sockets without a file, of which nothing is left behind,
		// whoever is killed.
		return "@gangline-" + rand.Text(), nil
	}
	return "", nil
}

// OneHost says whether all ranks are certainly on this host: their coordinator is at
// an address that no other host has.
func (p Place) OneHost() bool {
	host, _, err := net.SplitHostPort(p.Address)
	return strings.HasPrefix(p.Address, "unix:") || err == nil && loopback(host)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
