//go:build !amd64

package kernel

const haveAssembly = false

// elsewhere is what calling assembly on a machine without it panics with.
const elsewhere = "kernel: no assembly for this machine"
