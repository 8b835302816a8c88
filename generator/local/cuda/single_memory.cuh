/* single_memory.cuh - what the kinds of warps of sm90_single.cu share: memory on chip, and how blocks tell each other
 * numbers.
 *
 * A number that other blocks wait for is written together with a tag, in 64 bits that arrive at once: who reads
 * the tag has the number, without a barrier, a fence or a second trip to L2. A tag is of one launch of one step. */
#pragma once
#include "generator/local/cuda/ring.cuh"
#include "generator/local/cuda/single.h"

namespace device {
namespace {

enum {
    kPairs = 9,   /* of words, a thread waits for at once */
    kVectors = 4, /* of four numbers of the residual stream, a thread */
    kMostHidden = 4 * kVectors * kThreads,
    kMostSlots = 32,
    kMostRank = 512,
    kMostIn = 640,
    kWindow = 3,               /* stages on their way at once */
    kMemoryBytes = 225 * 1024, /* and up to 2 KB between arrays */
};

struct params {
    single_args a;
    int stages, window, row_bytes;
};

struct shared_memory {
    ring_barriers bars;
    uint64_t choice_made, weighed;
    float room[2][kWarps][kRows];
    float2 team[2][kWarps];
    float in[kMostIn], absorbed[kMostRank]; /* of a head, or of the cache */
    float weight[kMostSlots];
    int expert[kMostSlots];
};

/* What a block takes of a head's queries: as little as there is where rows of W_UK are on their own, all of it where
 * they share a scale. */
struct head_share {
    int head, first, rows;

    static __device__ int pieces(const project_args &p) {
        return p.cache.scale ? 1 : p.rank / kFlatRows;
    }
    static __device__ int count(const project_args &p) {
        return p.heads * pieces(p);
    }
    __device__ head_share(const project_args &p, int nth)
        : head(nth / pieces(p)), first(nth % pieces(p) * (p.rank / pieces(p))),
          rows(p.rank / pieces(p)) {
    }
};

__device__ __forceinline__ uint64_t tagged(uint32_t bits, uint32_t tag) {
    return static_cast<uint64_t>(tag) << 32 | bits;
}

__device__ __forceinline__ void tell(uint64_t *to, uint32_t bits, uint32_t tag) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(tagged(bits, tag))
                 : "memory");
}

__device__ __forceinline__ uint32_t tag_of(const single_args &a) {
    return __ldcg(a.told.epoch) << 8 | static_cast<uint32_t>(a.id);
}

struct told_pair {
    uint64_t a, b;

    __device__ void look(const uint64_t *from) {
        asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(a), "=l"(b)
                     : "l"(from)
                     : "memory");
    }
    __device__ bool has(uint32_t tag) const {
        return static_cast<uint32_t>(a >> 32) == tag && static_cast<uint32_t>(b >> 32) == tag;
    }
};

__device__ __forceinline__ float number_of(uint64_t word) {
    return __uint_as_float(static_cast<uint32_t>(word));
}

/* Waits for N pairs, all of them asked for at once, then again those that were not there: asking takes of what brings
 * the weights. Pair i is at words + place(i), of n; those outside are zeros. */
template <int N, typename F>
__device__ __forceinline__ void hear(told_pair (&to)[N], const uint64_t *words, int n, uint32_t tag,
                                     F place) {
    bool all;
#pragma unroll
    for (int i = 0; i < N; i++)
        to[i].a = to[i].b = tagged(0, place(i) >= 0 && place(i) < n ? ~tag : tag);
    do {
        all = true;
#pragma unroll
        for (int i = 0; i < N; i++)
            if (!to[i].has(tag))
                to[i].look(words + place(i));
#pragma unroll
        for (int i = 0; i < N; i++)
            all = all && to[i].has(tag);
    } while (!all);
}

/* A number that may well be there: it is asked for before it is needed. */
struct told_one {
    uint64_t word;

    __device__ void look(const uint64_t *from) {
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    }
    __device__ float hear(const uint64_t *from, uint32_t tag) {
        while (static_cast<uint32_t>(word >> 32) != tag)
            look(from);
        return number_of(word);
    }
};

} // namespace
} // namespace device
