//go:build !amd64

package half

const haveAssembly = false

// elsewhere is what calling assembly on a machine without it panics with.
const elsewhere = "half: no assembly for this machine"
