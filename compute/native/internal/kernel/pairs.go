package kernel

import "github.com/gangline/gangline/tensor"

// Upper copies the elements of a matrix above its diagonal, row by row.
func Upper[T tensor.Float](pairs, matrix []T, f int) {
	for i := range f {
		pairs = pairs[copy(pairs, matrix[i*f+i+1:(i+1)*f]):]
	}
}

// Symmetric is Upper the other way round, to both sides of a diagonal of 0.
func Symmetric[T tensor.Float](matrix, pairs []T, f int) {
	for i := range f {
		row := pairs[:f-1-i]
		pairs = pairs[len(row):]
		matrix[i*f+i] = 0
		copy(matrix[i*f+i+1:], row)
		for j, v := range row {
			matrix[(i+1+j)*f+i] = v
		}
	}
}
