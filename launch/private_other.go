//go:build !unix

package launch

import (
	"context"
	"errors"
	"net"
)

// errPrivate: only where directories have an owner can ranks meet in private.
var errPrivate = errors.New("ranks cannot meet in private on this system: set " + EnvToken)

type meeting struct {
	token    string
	listener net.Listener
}

func privateDir(func(string) string, string, string) string { return "private" }

func hold(string) (*meeting, error) { return nil, errPrivate }

func (m *meeting) address() string { return "" }

func (m *meeting) end() error { return nil }

func look(context.Context, string) (address, token string, err error) { return "", "", errPrivate }
