//go:build !noasm

package glance

const haveAssembly = true
