//go:build !amd64

package vector

const haveAssembly = false
