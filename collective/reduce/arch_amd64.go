//go:build !noasm

package reduce

const haveAssembly = true
