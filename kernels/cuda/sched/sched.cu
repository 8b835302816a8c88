#include "kernels/cuda/sched/plan_step.cuh"

namespace {

enum { kFewThreads = 256 }; /* a smaller block has faster barriers */

__global__ void __launch_bounds__(kMostThreads, 1)
    schedule(sched_plan plan, sequences seqs, int parts, int splits, page_table table) {
    extern __shared__ int memory[];
    plan_step(*reinterpret_cast<shared *>(memory), plan, seqs, parts, splits, table);
}

} // namespace

int sched_max_items(int batch, int parts, int splits) {
    return splits == 0 ? batch + parts : batch * splits;
}

cudaError_t sched_launch(const sched_plan &plan, const int *seqlens, int batch, int max_tokens,
                         const sched_tile &tile, int parts, int splits, cudaStream_t stream,
                         const int *block_table, int table_width) {
    if (parts < 1 || parts > kMaxParts)
        return cudaErrorInvalidValue;
    const sequences seqs = {seqlens,   batch, max_tokens, tile.tokens, __builtin_ctz(tile.tokens),
                            tile.merge, tile.line};
    const int threads = parts < kFewThreads ? int(kFewThreads) : int(kMostThreads);
    schedule<<<1, threads, sizeof(shared), stream>>>(plan, seqs, parts, splits,
                                                     {block_table, table_width});
    return cudaGetLastError();
}
