//go:build !linux

package tensor

// advise does nothing: these systems choose the size of pages themselves.
func advise([]byte) {}
