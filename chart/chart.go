// Package chart draws the curves of a run.
package chart
