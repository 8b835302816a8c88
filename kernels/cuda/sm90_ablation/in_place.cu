/* Compiles sm90_fp8 with one change: products add to the output inside the tensor cores, which keep
 * about 13 bits of a sum. */
#define SM90_FP8_IN_PLACE 1
#define sm90_fp8          in_place_fp8
#define fp8_decode_init   in_place_decode_init
#define fp8_decode_launch in_place_decode_launch
#define fp8_row_tiles     in_place_row_tiles
#define fp8_grid          in_place_grid
#include "kernels/cuda/sm90_fp8/fp8_launch.cu"
