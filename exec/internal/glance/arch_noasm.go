//go:build amd64 && noasm

package glance

// haveAssembly: a program built with the tag noasm does without, as on machines
// that have none.
const haveAssembly = false
