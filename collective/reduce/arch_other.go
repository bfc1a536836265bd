//go:build !amd64

package reduce

const haveAssembly = false

// elsewhere is what calling assembly on a machine without it panics with.
const elsewhere = "reduce: no assembly for this machine"
