// Package metric measures predictions against labels.
package metric
