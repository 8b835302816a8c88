/* partials.cuh - partial results of few rows on their way from those who compute them to those who
 * merge them, within a launch.
 *
 * Nobody is told that they are there. Memory without a result holds a word that no result has
 * (kAbsent): who reads it asks until he finds another, and puts kAbsent back for the next launch.
 * Every word has one reader, or none. So neither a fence nor a counter stands between a store and who waits
 * for it; but what isn't there is asked for again and again, and written twice, which pays for few
 * rows only.
 *
 * A unit is 128 bytes of a row, 16 for each of eight lanes, in an order of the kernel's own; beside it
 * is room for a copy of the row's LSE (base 2). Stored are those of the units that are a row's first in a
 * share, for each has one reader. */
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace merging {

enum { kLanes = 8 };
constexpr uint32_t kAbsent =
    ~0u; /* two bf16 or an fp32 that no instruction makes: its NaN is 7fff.. */

/* Without a jump. */
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

/* Without a jump. */
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

/* Slots of `Units` units: first their numbers, then the copies of the LSE. */
template <int Units>
struct partials {
    enum { BYTES = Units * (kLanes * 16 + 4) };           /* of a slot */
    enum { OUT_STEP = BYTES / 16, LSE_STEP = BYTES / 4 }; /* from slot to slot */
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
