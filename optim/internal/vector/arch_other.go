//go:build !amd64

package vector

const haveAssembly = false

// elsewhere is what calling assembly on a machine without it panics with.
const elsewhere = "vector: no assembly for this machine"
