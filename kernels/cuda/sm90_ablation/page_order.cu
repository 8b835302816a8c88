/* Compiles sm90_fp8 with a unit of P for each page. The second page of a tile is multiplied and
 * added before the first. */
#define SM90_FP8_PAGE_UNITS 1
#define SM90_FP8_PAGE_ORDER 1
#define sm90_fp8            page_order_fp8
#define fp8_decode_init     page_order_decode_init
#define fp8_decode_launch   page_order_decode_launch
#define fp8_row_tiles       page_order_row_tiles
#define fp8_grid            page_order_grid
#include "kernels/cuda/sm90_fp8/fp8_launch.cu"
