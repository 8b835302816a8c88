/* Compiles sm90_fp8 with fewer buffers: only one page is loaded ahead of the current tile. The
 * pipeline needs at least this page. */
#define SM90_FP8_STAGES   3
#define sm90_fp8          shallow_fp8
#define fp8_decode_init   shallow_decode_init
#define fp8_decode_launch shallow_decode_launch
#define fp8_row_tiles     shallow_row_tiles
#define fp8_grid          shallow_grid
#include "kernels/cuda/sm90_fp8/fp8_launch.cu"
