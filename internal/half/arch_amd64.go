//go:build !noasm

package half

const haveAssembly = true
