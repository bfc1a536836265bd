//go:build !amd64

package glance

const haveAssembly = false

// elsewhere is what calling assembly on a machine without it panics with.
const elsewhere = "glance: no assembly for this machine"
