// Package format reads the file formats of users into blocks of package table.
package format
