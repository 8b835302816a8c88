/* Compiles sm90_bf16 for an FP8 cache: pages are dequantised on chip, and the arithmetic is that of
 * the BF16 kernel. */
#define SM90_BF16_WIDEN    1
#define sm90_bf16          widened_fp8
#define bf16_decode_init   widened_decode_init
#define bf16_decode_launch widened_decode_launch
#define bf16_decode_parts  widened_decode_parts
#define bf16_row_tiles     widened_row_tiles
#include "kernels/cuda/sm90_bf16/bf16_launch.cu"
