//go:build !amd64

package kernel

const haveAssembly = false
