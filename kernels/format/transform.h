/* transform.h - the rotation and the offset of the content. Only the files of this folder include
 * this header. */
#ifndef SNAPMLA_KERNELS_FORMAT_TRANSFORM_H
#define SNAPMLA_KERNELS_FORMAT_TRANSFORM_H

#include <stdint.h>

/* Multiplies each group of @block neighbouring numbers of x[0..n-1] by the Hadamard matrix of order
 * @block (Sylvester's, a power of two) divided by sqrt(block). The matrix is its own inverse. A
 * block of 0 changes nothing. */
void transform_hadamard(double *x, int n, int block);

/* The means of @columns columns of @x, fp32 [rows][width], summed in FP64 and rounded to FP32.
 * Without rows they are 0. */
void transform_means(float *mean, const float *x, int64_t rows, int64_t width, int columns);

#endif
