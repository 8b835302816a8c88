/* Products for any machine, in 128-bit vectors of GNU C. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3")
#endif
#include <string.h>

#include "kernels/formats.h"

#define LANES           4
#define VF_FMA(a, b, c) ((a) * (b) + (c))
#define VF_MAX(a, b)    vf_select((a) > (b), (a), (b))
#define VF_SUM(a)       (((a)[0] + (a)[2]) + ((a)[1] + (a)[3]))

#include "generator/local/gemm/tile.h"

static void rows_bf16(const gemm_tile *t) {
    walk_rows(t, IN_BF16, rows_block);
}

static bool usable(void) {
    return true;
}

const gemm_isa gemm_portable = {
    .name = "portable",
    .usable = usable,
    .rows_bf16 = rows_bf16,
    .rows_f32 = rows_f32,
    .cols_bf16 = cols_bf16,
    .cols_f32 = cols_f32,
    .to_bf16 = to_bf16,
    .exp2 = exp2_row,
};
