/* The kernel of single_layer(). A launch has one block per SM, which computes its share of all
 * products between two attentions. */
#include <algorithm>

#include "generator/local/cuda/single_feed.cuh"
#include "generator/local/cuda/single_work.cuh"

namespace device {
namespace {

/* Reads one word of every 64 bytes of the launch's arguments, so that they are cached. Called by a
 * warp that would otherwise be idle. */
__device__ __forceinline__ void warm(const params &p) {
    const uint32_t *word = reinterpret_cast<const uint32_t *>(&p);
    uint32_t all = 0;
#pragma unroll
    for (size_t i = 0; i < sizeof p / sizeof *word; i += 16)
        all |= word[i];
    if (all == 0) /* never true in practice; without it the compiler would drop the loads */
        __nanosleep(0);
}

__global__ void __launch_bounds__(kThreads + kOtherThreads, 1)
    layer(const __grid_constant__ params p) {
    extern __shared__ __align__(128) uint8_t memory[];
    __shared__ shared_memory s;
    const ring r(memory, s.bars, p.stages, p.window);
    uint8_t *behind = memory + p.stages * kStageBytes;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&s.choice_made, 1);
        ptx::mbarrier_init(&s.weights_ready, 1);
        r.init();
    }
    __syncthreads();
    let_next();
    if (threadIdx.x < kThreads)
        worker{p.a, s, r, {}, reinterpret_cast<bf16 *>(behind), {s.scratch, 0}, 0, 0}.run();
    else if (threadIdx.x < kThreads + 32)
        feeder{p.a, s, r, {}}.run();
    else {
        warm(p);
        if (p.a.experts.up)
            chooser{p.a, s}.run();
    }
}

/* Bytes of the longest row that is multiplied, rounded up to a multiple of 128. */
int row_bytes(const single_args &a) {
    const int slots = a.experts.route.how.chosen + a.experts.route.shared;
    const int longest = std::max({a.hidden, a.attention.heads * a.attention.v, a.attention.rank,
                                  slots * a.experts.inner, static_cast<int>(kMostIn)});
    return (longest * static_cast<int>(sizeof(bf16)) + 127) / 128 * 128;
}

/* The shared memory of a block, without the ring. */
int bytes_beside(const single_args &a) {
    return row_bytes(a) + static_cast<int>(sizeof(shared_memory));
}

int stages_of(const single_args &a) {
    return std::min<int>(kMostStages, (kMemoryBytes - bytes_beside(a)) / kStageBytes);
}

} // namespace

bool single_supports(const stream_of &s, const single_args &a) {
    const single_attention &n = a.attention;
    const int slots = a.experts.route.how.chosen + a.experts.route.shared;
    return s.hopper && a.hidden <= kMostHidden && a.hidden % kRows == 0 && n.v % kRows == 0 &&
           n.rank % 8 == 0 && a.experts.inner % 8 == 0 && a.next.columns % kRows == 0 &&
           a.next.project.rank % kFlatRows == 0 && a.next.project.rank <= kMostRank &&
           a.next.project.rank + a.next.project.rope <= kMostIn &&
           a.next.project.nope <= kFlatMost && a.next.project.nope % 8 == 0 &&
           a.next.project.rope <= kThreads && slots <= kMostSlots &&
           is_quick(a.experts.route.how) && a.experts.route.how.experts <= s.sms &&
           stages_of(a) >= 4;
}

cudaError_t single_init() {
    return cudaFuncSetAttribute(layer, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                kMemoryBytes - static_cast<int>(sizeof(shared_memory)));
}

/* The blocks wait for each other, so the launch is cooperative: all blocks run at the same time. */
cudaError_t single_layer(const stream_of &s, const single_args &a) {
    const int stages = stages_of(a);
    params p = {a, stages, std::min<int>(stages, kWindow), row_bytes(a)};
    cudaLaunchAttribute with[2] = {};
    with[0].id = cudaLaunchAttributeCooperative;
    with[0].val.cooperative = 1;
    with[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    with[1].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t c = {};
    c.gridDim = static_cast<unsigned>(s.sms);
    c.blockDim = kThreads + kOtherThreads;
    c.dynamicSmemBytes =
        static_cast<size_t>(p.stages) * kStageBytes + static_cast<size_t>(p.row_bytes);
    c.stream = s.stream;
    c.attrs = with;
    c.numAttrs = 2;
    return cudaLaunchKernelEx(&c, layer, p);
}

} // namespace device
