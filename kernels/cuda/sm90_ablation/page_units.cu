/* Compiles sm90_fp8 with a unit of P for each page, as in the paper. */
#define SM90_FP8_PAGE_UNITS 1
#define sm90_fp8            page_units_fp8
#define fp8_decode_init     page_units_decode_init
#define fp8_decode_launch   page_units_decode_launch
#define fp8_row_tiles       page_units_row_tiles
#define fp8_grid            page_units_grid
#include "kernels/cuda/sm90_fp8/fp8_launch.cu"
