#include "kernels/cuda/dataflow/prepare.h"

#include "kernels/cuda/dataflow/rows.cuh"
#include "kernels/cuda/sched/plan_step.cuh"

namespace {

enum { kThreads = PREPARE_MAX_PARTS + 1, kWarps = kThreads / 32, kResident = 4 /* per SM */ };

unsigned blocks_of(int64_t rows) {
    enum { kBlockRows = kWarps * kRows };
    return static_cast<unsigned>((rows + kBlockRows - 1) / kBlockRows);
}

__global__ void __launch_bounds__(kThreads, kResident)
    prepare(const __grid_constant__ prepare_args a, int appending) {
    extern __shared__ int memory[];
    if (blockIdx.x == 0) {
        plan_step(*reinterpret_cast<shared *>(memory), a.plan,
                  {a.step.seqlens, a.step.batch, a.step.max_tokens, a.tile.tokens,
                   31 - __clz(a.tile.tokens), a.tile.merge, a.tile.line},
                  a.parts, a.splits, {a.step.table, a.step.table_width});
        return;
    }
    const int64_t row = ((blockIdx.x - 1) * int64_t(kWarps) + threadIdx.x / 32) * kRows;
    const int64_t query = row - int64_t(appending) * kWarps * kRows;
    if (query >= 0)
        quantise_queries(a.q, query, a.rows, a.cache.d_c, a.cache.d_r, 
                         {a.q8, a.q_rope, a.q_scale, a.cache.pow2});
    else
        append_rows(a.cache, a.step, a.kv, static_cast<int>(row));
}

} // namespace

cudaError_t prepare_launch(const prepare_args &a, cudaStream_t stream) {
    if (a.parts < 1 || a.parts > PREPARE_MAX_PARTS)
        return cudaErrorInvalidValue;
    const unsigned appending = blocks_of(static_cast<int64_t>(a.step.batch) * a.step.s_q);
    prepare<<<1 + appending + blocks_of(a.rows), kThreads, sizeof(shared), stream>>>(
        a, static_cast<int>(appending));
    return cudaGetLastError();
}
