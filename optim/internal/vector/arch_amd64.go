//go:build !noasm

package vector

const haveAssembly = true
