// Package file opens the files of a data set wherever they are: local paths, globs, lists and object stores; compression is undone in place.
package file
