//go:build !amd64

package scan

const haveAssembly = false

// elsewhere is what calling assembly on a machine without it panics with.
const elsewhere = "scan: no assembly for this machine"
