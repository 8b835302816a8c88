/* tensor.h - a tensor in a safetensors file, and its numbers.
 *
 * Weights are matrices [rows, cols], row-major; one row gives one output of a linear layer. An e4m3
 * weight has a second tensor `NAME_scale_inv` with FP32 factors [ceil(rows / block), ceil(cols /
 * block)]: weight = e4m3 * the factor of its block (DeepSeek-V3's technical report, sec. 3.3.2). */
#ifndef SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_TENSOR_H
#define SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_TENSOR_H

#include <stddef.h>
#include <stdint.h>

typedef enum { DTYPE_BF16, DTYPE_F16, DTYPE_F32, DTYPE_F8_E4M3, DTYPE_OTHER } tensor_dtype;

enum { TENSOR_DIMS = 4 };

typedef struct {
    const char *name, *file; /* borrowed from the safetensors object, or from the caller that made
                                the tensor */
    tensor_dtype dtype;
    int n_dims;
    int64_t shape[TENSOR_DIMS]; /* further dimensions are 1 */
    const void *data;           /* little-endian; may be unaligned, so read it with memcpy */
    size_t bytes;
} tensor;

/* The name of a dtype, such as "BF16"; "other" for a dtype that is not supported. */
const char *tensor_dtype_name(tensor_dtype dtype);

/**
 * tensor_read_f32 - read part of a row as FP32, exactly (e4m3: the product is rounded once)
 *
 * @w:     [rows, cols], or [n] as one row
 * @scale: of an e4m3 weight, for blocks of @block rows and columns; else NULL
 * @out:   [n]
 *
 * The part must lie inside the tensor, the scales must fit it (inventory_need() checks that), and
 * the dtype must not be DTYPE_OTHER. */
void tensor_read_f32(const tensor *w, const tensor *scale, int block, int64_t row, int64_t col,
                     int64_t n, float *out);

#endif
