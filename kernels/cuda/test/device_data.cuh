/* device_data.cuh - fills caches and queries with random numbers on the device, and compares a
 * kernel's output with FP64 attention there.
 *
 * Each number is a pure function of a seed and an index, so a failing case can be repeated. */
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include "kernels/cuda/sched/sched.h"
#include "kernels/cuda/sm90_fp8/fp8_config.h"
#include "kernels/cuda/test/device_memory.cuh"

enum { D_C = 512, D_R = 64, PAGE = 64 };
enum distribution { NORMAL, MLA, WIDE, SINK };

__host__ __device__ inline uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

__device__ inline float normal(uint64_t key) {
    uint64_t h = mix(key);
    float u = (static_cast<uint32_t>(h) + 0.5f) * 2.3283064e-10f;
    float v = (static_cast<uint32_t>(h >> 32) + 0.5f) * 2.3283064e-10f;
    return sqrtf(-2 * logf(fminf(u, 0.9999999f))) * cospif(2 * v);
}

/* Number d of row i: content first, then RoPE. NORMAL: normally distributed. MLA: every 16th RoPE
 * column of a token is large, with a standard deviation of 300. WIDE: the norms of rows vary over
 * several octaves. SINK: the first token of every 16th page of the pool is four times as large. */
__device__ inline float number(distribution kind, uint64_t seed, uint64_t i, int d, bool query) {
    float x = normal(mix(seed + 977 * i) + d);
    if (kind == MLA && d >= D_C)
        x *= query ? (d % 16 == 0 ? 0.2f : 1.0f) : (d % 16 == 0 ? 300.0f : 3.0f);
    if (kind == WIDE)
        x *= exp2f(1.5f * normal(mix(seed ^ 0x5555) + i));
    if (kind == SINK && !query && i % 1024 == 0)
        x *= 4.0f;
    return x;
}

/* Fills rows, one warp per row: scale max|content| / 448, e4m3 content, RoPE divided by the
 * scale. */
__global__ void fill_fp8(uint8_t *content, __nv_bfloat16 *rope, float *scale, int64_t rows,
                         distribution kind, uint64_t seed, bool query) {
    const int lane = threadIdx.x % 32;
    for (int64_t i = blockIdx.x * 8ll + threadIdx.x / 32; i < rows; i += gridDim.x * 8ll) {
        float x[D_C / 32], most = 0;
        for (int k = 0; k < D_C / 32; k++) {
            x[k] = number(kind, seed, i, lane + 32 * k, query);
            most = fmaxf(most, fabsf(x[k]));
        }
        for (int m = 16; m > 0; m /= 2)
            most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
        const float a = fmaxf(most, 1e-10f) / 448.0f;
        for (int k = 0; k < D_C / 32; k++)
            content[i * D_C + lane + 32 * k] = __nv_fp8_e4m3(x[k] / a).__x;
        for (int k = 0; k < D_R / 32; k++)
            rope[i * D_R + lane + 32 * k] =
                __float2bfloat16(number(kind, seed, i, D_C + lane + 32 * k, query) / a);
        if (lane == 0)
            scale[i] = a;
    }
}

__global__ void fill_bf16(__nv_bfloat16 *out, int64_t rows, distribution kind, uint64_t seed,
                          bool query) {
    const int64_t n = rows * (D_C + D_R);
    for (int64_t k = blockIdx.x * 256ll + threadIdx.x; k < n; k += gridDim.x * 256ll)
        out[k] = __float2bfloat16(
            number(kind, seed, k / (D_C + D_R), static_cast<int>(k % (D_C + D_R)), query));
}

/* A page as the kernel treats it. All members are base-2 logarithms, relative to the largest e4m3
 * number. top: the largest P a_k. bound: an upper bound of it, from the largest score and the
 * largest a_k. first: the E that P is rounded with. last: the E of the tile at the end, which its
 * page 1 may raise. */
struct judged_page {
    double top, bound, first, last;
};

struct judged {
    const uint8_t *content; /* for fp8; null for bf16 */
    const __nv_bfloat16 *rope, *kv;
    const float *token_scale;
    const uint8_t *q;
    const __nv_bfloat16 *q_rope, *q_bf16;
    const float *q_scale;
    const int *seqlens, *table;
    int table_width, heads, s_q;
    double softmax_scale;
    const __nv_bfloat16 *out;
    const float *lse;
    double *scores; /* [judged rows][longest] */
    int64_t longest;

    /* For fp8: also compare with the kernel's own arithmetic, that is scores summed as the tensor
     * cores sum them, and P rounded with the E that the kernel chooses. Null: don't. */
    double *alike;           /* [judged rows][longest] */
    judged_page *page;       /* [judged rows][longest / PAGE + 2] */
    const sched_item *items; /* E starts anew with each item of a row */
    int item_count;
    int tile_pages;  /* pages in a tile of the schedule */
    bool page_units; /* each page has its own E: that of its largest P a_k */
};

/* The errors of one row. Sums of squares: diff_exact: of the output minus the exact one;
 * diff_rounded: of the output minus one with rounded P; norm: of the exact output. row_worst:
 * relative error of the row. bad: how many output numbers are not finite. lse: error against exact
 * scores. lse_alike: error against scores summed as the tensor cores sum them. lse_bound: how far
 * those sums may change the LSE. lse, lse_alike and lse_bound are relative to max(1, |LSE|). */
struct verdict {
    double diff_exact, diff_rounded, norm, row_worst, lse, bad, lse_alike, lse_bound;
};

__device__ inline double block_sum(double x, bool maximum = false) {
    __shared__ double part[8];
    for (int m = 16; m > 0; m /= 2) {
        double y = __shfl_xor_sync(~0u, x, m);
        x = maximum ? fmax(x, y) : x + y;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    x = part[0];
    for (int i = 1; i < 8; i++)
        x = maximum ? fmax(x, part[i]) : x + part[i];
    return x;
}

__device__ inline double fp8(uint8_t byte) {
    __nv_fp8_e4m3 x;
    x.__x = byte;
    return static_cast<double>(static_cast<float>(x));
}

/* ---- sums of the fp8 tensor cores -----------------------------------------------------------
 * An instruction adds 32 products and the sum so far. They are aligned to the largest exponent
 * among them (the exponent of a product is the sum of its factors' exponents). Bits below
 * 2^-kSumBits of that are cut off; so are those of the new sum. This rule was found by experiment
 * on an H200. With it, scores equal the device's within 5e-7. With 12 or 14 bits, with two halves
 * of 16 products, or with the product's own exponent, they differ by 6e-5 to 2e-3. */
constexpr int kSumBits = 13;

__device__ inline int exponent_e4m3(uint8_t byte) {
    return max(byte >> 3 & 15, 1) - 7;
}

__device__ inline double cut_off(double x) {
    if (x == 0)
        return 0;
    const int unit = ilogb(x) - kSumBits;
    return ldexp(trunc(ldexp(x, -unit)), unit);
}

struct cut_sum {
    double value, lost; /* lost: upper bound of what was cut off */
};

/* q . c over the content of a token, by one warp. Lane l has product l of every step. */
__device__ inline cut_sum dot_alike(const uint8_t *q, const uint8_t *c) {
    const int lane = threadIdx.x % 32;
    cut_sum s = {0, 0};
    for (int d = lane; d < D_C; d += 32) {
        const double product = fp8(q[d]) * fp8(c[d]);
        int top = product == 0 ? -1000 : exponent_e4m3(q[d]) + exponent_e4m3(c[d]);
        if (s.value != 0)
            top = max(top, ilogb(s.value));
        for (int m = 16; m > 0; m /= 2)
            top = max(top, __shfl_xor_sync(~0u, top, m));
        if (top == -1000)
            continue;
        const int unit = top - kSumBits;
        double kept = trunc(ldexp(product, -unit));
        for (int m = 16; m > 0; m /= 2)
            kept += __shfl_xor_sync(~0u, kept, m);
        s.value = cut_off(ldexp(kept + trunc(ldexp(s.value, -unit)), unit));
        s.lost += ldexp(33.0, unit) + (s.value == 0 ? 0 : ldexp(1.0, ilogb(s.value) - kSumBits));
    }
    return s;
}

/* ---- P rounded as the kernel rounds it ------------------------------------------------------ */

__device__ inline double round_e4m3(double x) {
    return static_cast<double>(static_cast<float>(__nv_fp8_e4m3(static_cast<float>(x))));
}

/* Computes E of each page of a row; called by one thread. */
__device__ inline void choose_units(const judged &j, int seq, int visible, judged_page *page) {
    const double none = static_cast<double>(sm90_fp8::kNone);
    const double window = static_cast<double>(sm90_fp8::kWindow);
    const double headroom = static_cast<double>(sm90_fp8::kHeadroom);
    const double reach = static_cast<double>(sm90_fp8::kReach);
    for (int k = 0; k < j.item_count; k++) {
        const sched_item item = j.items[k];
        if (item.seq != seq)
            continue;
        double unit = none, most = none;
        const int begin = j.tile_pages * item.tile_begin, end = j.tile_pages * item.tile_end;
        for (int i = begin; i < end && i * PAGE < visible; i++) {
            const double anchored = page[i].top + headroom;
            const bool second = (i - begin) % 2 == 1;
            if (second && page[i].bound > unit)
                unit = fmax(unit, anchored);
            if (!second && (page[i].bound > unit || page[i].bound <= unit - window))
                unit = anchored;
            if (!second)
                unit = fmax(unit, most - reach);
            most = fmax(most, unit);
            page[i].first = page[i].last = unit;
            if (second)
                page[i - 1].last = unit;
        }
    }
}

/* Rounds to 4 significant bits, ties to even. That is what e4m3 does to a number in its normal
 * range with a scale that is a power of two. */
__device__ inline double four_bits(double x) {
    int e;
    double m = frexp(x, &e);
    return ldexp(rint(m * 16) / 16, e);
}

/* Replaces the row's scores in j.alike by P, rounded as the kernel rounds it and divided by its
 * sum. Returns the LSE. */
__device__ inline double round_alike(const judged &j, int seq, int visible, const int *table) {
    const double log2e = 1.4426950408889634, largest = static_cast<double>(sm90_fp8::kLog2Largest);
    double *alike = j.alike + blockIdx.x * j.longest;
    judged_page *page = j.page + blockIdx.x * (j.longest / PAGE + 2);
    const int length = j.seqlens[seq];
    auto scale_of = [&](int t) {
        return static_cast<double>(
            j.token_scale[table[t / PAGE] * static_cast<int64_t>(PAGE) + t % PAGE]);
    };
    double most = -INFINITY, sum = 0;
    for (int t = threadIdx.x; t < visible; t += 256)
        most = fmax(most, alike[t]);
    most = block_sum(most, true);
    for (int t = threadIdx.x; t < visible; t += 256)
        sum += exp(alike[t] - most);
    sum = block_sum(sum);
    for (int i = threadIdx.x; i * PAGE < visible; i += 256) {
        double top = -INFINITY, score = -INFINITY, scale = 0;
        for (int t = i * PAGE; t < min((i + 1) * PAGE, length); t++) {
            scale = fmax(scale, scale_of(t));
            if (t >= visible)
                continue;
            score = fmax(score, alike[t] * log2e);
            top = fmax(top, alike[t] * log2e + log2(scale_of(t)));
        }
        page[i].top = top - largest;
        page[i].bound = score + log2(scale) - largest;
    }
    __syncthreads();
    for (int i = threadIdx.x; i * PAGE < visible && j.page_units; i += 256)
        page[i].first = page[i].last = page[i].top;
    if (threadIdx.x == 0 && !j.page_units)
        choose_units(j, seq, visible, page);
    __syncthreads();
    for (int t = threadIdx.x; t < visible; t += 256) {
        const double first = page[t / PAGE].first, last = page[t / PAGE].last;
        double p = round_e4m3(exp2(alike[t] * log2e - first) * scale_of(t));
        p = last == first ? p : round_e4m3(p * exp2(first - last));
        alike[t] = p * exp2(last - (most + log(sum)) * log2e);
    }
    __syncthreads();
    return most + log(sum);
}

/* Compares query rows of the output, and their LSE, with FP64 attention over the same cache. Each
 * block of 256 threads compares one row, rows[blockIdx.x], and stores its errors in
 * out[blockIdx.x]. The host decides whether these are too large. */
__global__ void judge(judged j, const int *rows, verdict *out) {
    const int row = rows[blockIdx.x], per = j.heads * j.s_q, seq = row / per;
    const int length = j.seqlens[seq];
    const int visible = max(length - (j.s_q - 1 - row % per / j.heads), 0);
    const int *table = j.table + static_cast<size_t>(seq) * j.table_width;
    double *score = j.scores + blockIdx.x * j.longest;
    const int lane = threadIdx.x % 32;
    double bound = 0;
    for (int t = threadIdx.x / 32; t < visible; t += 8) {
        const int64_t slot = table[t / PAGE] * static_cast<int64_t>(PAGE) + t % PAGE;
        double dot = 0;
        if (j.content) {
            for (int d = lane; d < D_C; d += 32)
                dot +=
                    fp8(j.q[row * static_cast<int64_t>(D_C) + d]) * fp8(j.content[slot * D_C + d]);
            for (int d = lane; d < D_R; d += 32)
                dot += static_cast<double>(
                           __bfloat162float(j.q_rope[row * static_cast<int64_t>(D_R) + d])) *
                       static_cast<double>(__bfloat162float(j.rope[slot * D_R + d]));
        } else {
            for (int d = lane; d < D_C + D_R; d += 32)
                dot += static_cast<double>(
                           __bfloat162float(j.q_bf16[row * static_cast<int64_t>(D_C + D_R) + d])) *
                       static_cast<double>(__bfloat162float(j.kv[slot * (D_C + D_R) + d]));
        }
        for (int m = 16; m > 0; m /= 2)
            dot += __shfl_xor_sync(~0u, dot, m);
        if (j.content)
            dot *= static_cast<double>(j.q_scale[row]) * static_cast<double>(j.token_scale[slot]);
        if (lane == 0)
            score[t] = dot * j.softmax_scale;
        if (!j.alike)
            continue;
        const cut_sum cut =
            dot_alike(j.q + row * static_cast<int64_t>(D_C), j.content + slot * D_C);
        double exact = 0;
        for (int d = lane; d < D_C; d += 32)
            exact += fp8(j.q[row * static_cast<int64_t>(D_C) + d]) * fp8(j.content[slot * D_C + d]);
        for (int m = 16; m > 0; m /= 2)
            exact += __shfl_xor_sync(~0u, exact, m);
        const double unit = static_cast<double>(j.q_scale[row]) *
                            static_cast<double>(j.token_scale[slot]) * j.softmax_scale;
        if (lane == 0)
            j.alike[blockIdx.x * j.longest + t] = score[t] + (cut.value - exact) * unit;
        bound = fmax(bound, cut.lost * unit);
    }
    __syncthreads();
    double most = -INFINITY, sum = 0;
    for (int t = threadIdx.x; t < visible; t += 256)
        most = fmax(most, score[t]);
    most = block_sum(most, true);
    for (int t = threadIdx.x; t < visible; t += 256)
        sum += exp(score[t] - most);
    sum = block_sum(sum);
    __syncthreads();
    for (int t = threadIdx.x; t < visible; t += 256)
        score[t] = exp(score[t] - most);
    __syncthreads();
    bound = block_sum(bound, true);
    const double lse_alike = j.alike && visible > 0 ? round_alike(j, seq, visible, table) : 0;
    double exact[2] = {0, 0}, rounded[2] = {0, 0};
    const double unit =
        visible > 0 ? exp(most - 0.6931471805599453 * floor(most / 0.6931471805599453)) : 1;
    for (int t = 0; t < visible; t++) {
        const int64_t slot = table[t / PAGE] * static_cast<int64_t>(PAGE) + t % PAGE;
        const double a = j.content ? static_cast<double>(j.token_scale[slot]) : 1.0;
        const double p = score[t] * a, p8 = j.alike ? j.alike[blockIdx.x * j.longest + t] * sum
                                                    : four_bits(p * unit) / unit;
        for (int k = 0; k < 2; k++) {
            const int d = threadIdx.x + 256 * k;
            const double v =
                j.content ? fp8(j.content[slot * D_C + d])
                          : static_cast<double>(__bfloat162float(j.kv[slot * (D_C + D_R) + d]));
            exact[k] += p * v;
            rounded[k] += p8 * v;
        }
    }
    double d_exact = 0, d_rounded = 0, norm = 0, bad = 0;
    for (int k = 0; k < 2; k++) {
        const double got = static_cast<double>(
            __bfloat162float(j.out[static_cast<int64_t>(row) * D_C + threadIdx.x + 256 * k]));
        const double want = visible > 0 ? exact[k] / sum : 0,
                     alike = visible > 0 ? rounded[k] / sum : 0;
        bad += !isfinite(got);
        d_exact += (got - want) * (got - want);
        d_rounded += (got - alike) * (got - alike);
        norm += want * want;
    }
    d_exact = block_sum(d_exact);
    d_rounded = block_sum(d_rounded);
    norm = block_sum(norm);
    bad = block_sum(bad);
    if (threadIdx.x != 0)
        return;
    const double lse = visible > 0 ? most + log(sum) : -INFINITY,
                 got = static_cast<double>(j.lse[row]);
    double lse_error =
        visible > 0 ? fabs(got - lse) / fmax(1.0, fabs(lse)) : (got == lse ? 0 : 1e30);
    double alike_error = lse_error;
    if (j.alike && visible > 0)
        alike_error = fabs(got - lse_alike) / fmax(1.0, fabs(lse));
    if (isnan(lse_error) || isnan(alike_error))
        lse_error = alike_error = 1e30;
    out[blockIdx.x] = {d_exact,     d_rounded,
                       norm,        norm > 0 ? sqrt(d_exact / norm) : (d_exact > 0 ? 1e30 : 0),
                       lse_error,   bad,
                       alike_error, bound / fmax(1.0, fabs(lse))};
}
