//go:build !nocloud

package main

// Data in object stores: s3, gs, azblob. The three clients are more than half of
// the program; go build -tags nocloud leaves them out.
import _ "github.com/gangline/gangline/data/file/cloud"
