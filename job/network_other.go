//go:build !unix

package job

// defaultNetwork is what ranks of one host use unless told otherwise.
const defaultNetwork = "tcp"
