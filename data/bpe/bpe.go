// Package bpe cuts text into the tokens of a byte-level byte-pair encoding, that of GPT-2.
package bpe
