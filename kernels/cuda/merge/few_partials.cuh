/* few_partials.cuh - the partial results of few rows, exchanged between CTAs of one launch.
 *
 * Memory that contains no result holds a sentinel, a word that no result contains (kAbsent). A
 * reader polls until it finds another word, and then writes kAbsent back for the next launch. Every
 * word has at most one reader. So neither a fence nor a counter delays a reader after the store.
 * The cost is that words that are not there yet are read repeatedly, and each word is written
 * twice. Only with few rows is this faster; with more, stored items are counted (cut_sequence.cuh).
 *
 * A unit is 128 bytes of a row, 16 for each of eight lanes. The order of the numbers in it is that
 * of the kernel which uses this file. A CTA merges a share of consecutive units (few_rows.cuh). For
 * each unit of a slot there is also room for a copy of the row's LSE (base 2), after the numbers of
 * all units. A share reads, for each of its rows, the copy of the first unit that it has of the
 * row. Only these copies are stored, so each of them has exactly one reader. */
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace merging {

enum { kLanes = 8 };
/* Read as two bf16 numbers or as one FP32 number, kAbsent is NaN. No result has this NaN: when an
 * instruction produces a NaN, its bits begin with 7fff. */
constexpr uint32_t kAbsent = ~0u;

/* These loads and stores are predicated, so that they need no jump. */
__device__ __forceinline__ void store_relaxed_if(bool real, uint4 *to, uint4 x) {
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %5, 0;\n"
                 "@p st.relaxed.gpu.global.v4.b32 [%0], {%1, %2, %3, %4};\n"
                 "}" ::"l"(to),
                 "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(static_cast<int>(real))
                 : "memory");
}

__device__ __forceinline__ void store_relaxed_if(bool real, uint32_t *to, uint32_t x) {
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %2, 0;\n"
                 "@p st.relaxed.gpu.global.b32 [%0], %1;\n"
                 "}" ::"l"(to),
                 "r"(x), "r"(static_cast<int>(real))
                 : "memory");
}

__device__ __forceinline__ void store_if(bool real, void *to, uint32_t x) {
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %2, 0;\n"
                 "@p st.global.b32 [%0], %1;\n"
                 "}" ::"l"(to),
                 "r"(x), "r"(static_cast<int>(real))
                 : "memory");
}

__device__ __forceinline__ void load_relaxed_if(bool real, uint4 &x, const uint4 *from) {
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %5, 0;\n"
                 "@p ld.relaxed.gpu.global.v4.b32 {%0, %1, %2, %3}, [%4];\n"
                 "}"
                 : "+r"(x.x), "+r"(x.y), "+r"(x.z), "+r"(x.w)
                 : "l"(from), "r"(static_cast<int>(real))
                 : "memory");
}

__device__ __forceinline__ void load_relaxed_if(bool real, float &x, const uint32_t *from) {
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %2, 0;\n"
                 "@p ld.relaxed.gpu.global.b32 %0, [%1];\n"
                 "}"
                 : "+f"(x)
                 : "l"(from), "r"(static_cast<int>(real))
                 : "memory");
}

__device__ __forceinline__ bool any_absent(uint4 x) {
    return max(max(x.x, x.y), max(x.z, x.w)) == kAbsent;
}

/* Slots of `Units` units each: first the numbers of all units, then the copies of the LSE. */
template <int Units>
struct partials {
    enum { BYTES = Units * (kLanes * 16 + 4) };           /* per slot */
    enum { OUT_STEP = BYTES / 16, LSE_STEP = BYTES / 4 }; /* distance from one slot to the next:
                                                             OUT_STEP in uint4, LSE_STEP in words */
    uint8_t *slots;

    __device__ uint4 *out(int slot, int unit, int lane) const {
        return reinterpret_cast<uint4 *>(slots + static_cast<size_t>(slot) * BYTES) +
               unit * kLanes + lane;
    }
    __device__ uint32_t *lse(int slot, int unit) const {
        return reinterpret_cast<uint32_t *>(out(slot, Units, 0)) + unit;
    }
    __device__ void store_lse(bool real, int slot, int unit, float x) const {
        store_relaxed_if(real, lse(slot, unit), __float_as_uint(isnan(x) ? NAN : x));
    }
};

} // namespace merging
