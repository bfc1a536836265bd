//go:build !noasm

package scan

const haveAssembly = true
