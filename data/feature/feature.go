// Package feature turns raw fields into what models take: dense values and ids.
package feature
