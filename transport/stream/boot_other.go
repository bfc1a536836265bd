//go:build unix && !linux && !darwin

package stream

import "errors"

// bootID is not known here: all members count as being on hosts of their own.
func bootID() (string, error) { return "", errors.ErrUnsupported }
