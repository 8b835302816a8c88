/* single_memory.cuh - what the warps of sm90_single.cu share: shared memory, and the exchange of
 * numbers between blocks.
 *
 * A number that other blocks wait for is written together with a tag, as one 64-bit word. The word
 * arrives as a whole, so a reader that finds the tag also has the number. This needs no barrier and
 * no fence. A tag belongs to one launch of one step. */
#pragma once
#include "generator/local/cuda/ring.cuh"
#include "generator/local/cuda/single.h"

namespace device {
namespace {

enum {
    kPairs = 9,   /* pairs of words that a thread waits for at a time */
    kVectors = 4, /* vectors of four numbers of the residual stream per thread */
    kMostHidden = 4 * kVectors * kThreads,
    kMostSlots = 32,
    kMostRank = 512,
    kMostIn = 640,
    kWindow = 3,               /* stages of the ring that feed() keeps loading at the same time, at
                                  most */
    kMemoryBytes = 225 * 1024, /* most bytes of the ring, the row to multiply (params.row_bytes) and
                                  shared_memory together. A Hopper block may use 227 KB; 2 KB are
                                  left for padding */
};

struct params {
    single_args a;
    int stages, window, row_bytes;
};

struct shared_memory {
    ring_barriers bars;
    uint64_t choice_made, weights_ready;
    float scratch[2][kWarps][kRows];
    float2 team[2][kWarps];
    float in[kMostIn], absorbed[kMostRank]; /* projections of one head or of the cache's new row,
                                               and one head's absorbed query */
    float weight[kMostSlots];
    int expert[kMostSlots];
};

/* The part of one head's absorbed query that a block computes. In BF16 it is the product with
 * kFlatRows rows of W_UK, which is one stage of feed_flat(). In FP8 it is the whole query, because
 * its numbers share a scale. */
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

__device__ __forceinline__ void publish(uint64_t *to, uint32_t bits, uint32_t tag) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(tagged(bits, tag))
                 : "memory");
}

__device__ __forceinline__ uint32_t tag_of(const single_args &a) {
    return __ldcg(a.exchange.epoch) << 8 | static_cast<uint32_t>(a.id);
}

struct tagged_pair {
    uint64_t a, b;

    __device__ void load(const uint64_t *from) {
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

/* Waits for N pairs. Loads all of them at once, and then repeats only the loads whose tag was
 * missing, because these loads compete with those of the weights. Pair i is at words + place(i).
 * Pairs outside 0 .. n - 1 are zeros. */
template <int N, typename F>
__device__ __forceinline__ void receive(tagged_pair (&to)[N], const uint64_t *words, int n,
                                        uint32_t tag, F place) {
    bool all;
#pragma unroll
    for (int i = 0; i < N; i++)
        to[i].a = to[i].b = tagged(0, place(i) >= 0 && place(i) < n ? ~tag : tag);
    do {
        all = true;
#pragma unroll
        for (int i = 0; i < N; i++)
            if (!to[i].has(tag))
                to[i].load(words + place(i));
#pragma unroll
        for (int i = 0; i < N; i++)
            all = all && to[i].has(tag);
    } while (!all);
}

/* A number that has probably arrived already. load() starts the read before the number is
 * needed. */
struct tagged_value {
    uint64_t word;

    __device__ void load(const uint64_t *from) {
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    }
    __device__ float receive(const uint64_t *from, uint32_t tag) {
        while (static_cast<uint32_t>(word >> 32) != tag)
            load(from);
        return number_of(word);
    }
};

} // namespace
} // namespace device
