//go:build !noasm

package kernel

const haveAssembly = true
