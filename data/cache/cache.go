// Package cache is the binary form of prepared rows, which loads at memory speed.
package cache
