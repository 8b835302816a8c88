/* code_times.cuh - times of products with e4m3 weights and with BF16 weights, for the sizes of
 * DeepSeek-V3. Dense products of e4m3 weights are also compared with those of cuBLASLt. */
#pragma once
#include <algorithm>
#include <functional>

#include "generator/local/cuda/cublaslt.h"
#include "generator/local/cuda/rows.h"
#include "generator/test/cuda/code_case.cuh"
#include "generator/test/cuda/library_fp8.cuh"
#include "kernels/cuda/ceilings/cuda_probes.h"

namespace codes {

/* The median time of @f in us, each time after a flush of L2. */
template <typename F>
double median_us(const device::stream_of &s, const F &f) {
    enum { kWarmup = 2, kTimes = 15 };
    static const size_t n = size_t(16) << 20;
    static uint4 *buffer = nullptr;
    static uint32_t *sink = nullptr;
    if (!buffer) {
        buffer = allocate<uint4>(n);
        sink = allocate<uint32_t>(1);
        CHECK(cudaMemset(buffer, 1, n * sizeof(uint4)));
    }
    std::vector<float> us;
    cudaEvent_t from, to;
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    for (int i = -kWarmup; i < kTimes; i++) {
        float ms = 0;
        flush_l2<<<1056, 512, 0, s.stream>>>(buffer, n, sink);
        CHECK(cudaEventRecord(from, s.stream));
        CHECK(f());
        CHECK(cudaEventRecord(to, s.stream));
        CHECK(cudaEventSynchronize(to));
        CHECK(cudaEventElapsedTime(&ms, from, to));
        if (i >= 0)
            us.push_back(ms * 1e3f);
    }
    CHECK(cudaEventDestroy(from));
    CHECK(cudaEventDestroy(to));
    std::sort(us.begin(), us.end());
    return us[us.size() / 2];
}

struct ceilings {
    double bytes_us, fp8_us, bf16_us; /* bytes and FLOP in a us */
};

inline ceilings measure_ceilings(const device::stream_of &s) {
    const size_t bytes = size_t(2) << 30;
    const int pages = static_cast<int>(bytes / PROBE_PAGE);
    uint8_t *memory = allocate<uint8_t>(bytes);
    std::vector<int> order;
    ceilings c;
    double flop = 0;
    for (int i = 0; i < pages; i++)
        order.push_back(static_cast<int>(static_cast<int64_t>(i) * 7919 % pages));
    CHECK(probe_fill(memory, bytes, s.stream));
    const read_memory m = {memory, upload(order), pages, allocate<uint32_t>(1)};
    c.bytes_us = static_cast<double>(pages) * PROBE_PAGE /
                 median_us(s, [&] { return probe_read_bulk(m, s.sms, s.stream); });
    float *never = allocate<float>(1);
    const double fp8 =
        median_us(s, [&] { return probe_wgmma(PROBE_FP8_N256, s.sms, &flop, never, s.stream); });
    c.fp8_us = flop / fp8;
    const double bf16 =
        median_us(s, [&] { return probe_wgmma(PROBE_BF16_N256, s.sms, &flop, never, s.stream); });
    c.bf16_us = flop / bf16;
    CHECK(cudaFree(memory));
    printf("ceilings: %.0f GB/s, FP8 %.0f TFLOPS, BF16 %.0f TFLOPS\n", c.bytes_us / 1e3,
           c.fp8_us / 1e6, c.bf16_us / 1e6);
    return c;
}

struct timed_size {
    const char *name;
    int n, k;
    device::gemm_end end;
    int experts, chosen; /* 0: no experts */
};

/* A product of a size, with both kinds of weights, and its lists of experts. */
struct timed_product {
    enum { MOST_ROWS = 4096 };
    timed_size t;
    device::bf16 *w, *x, *gathered;
    uint8_t *w_code, *x_code;
    float *w_scale, *x_scale;
    void *y;
    int groups, pairs, used; /* for the present number of rows; used: experts that have rows */
    int *place;              /* [rows][chosen] the pairs of each row */
    std::vector<void *> owned;

    template <typename T>
    T *take(int64_t n) {
        T *p = allocate<T>(static_cast<size_t>(n));
        owned.push_back(p);
        return p;
    }

    timed_product(const device::stream_of &s, const timed_size &t)
        : t(t), groups(t.experts ? t.experts : 1), pairs(0), used(0) {
        const int64_t numbers = static_cast<int64_t>(groups) * t.n * t.k,
                      scales = groups * device::code_scales(t.n, t.k),
                      rows = static_cast<int64_t>(MOST_ROWS) * std::max(t.chosen, 1);
        w = take<device::bf16>(numbers);
        w_code = take<uint8_t>(numbers);
        w_scale = take<float>(scales);
        x = take<device::bf16>(rows * t.k);
        gathered = take<device::bf16>(t.experts ? rows * t.k : 0);
        x_code = take<uint8_t>(rows * t.k);
        x_scale = take<float>(device::row_scale_pitch(rows) * device::code_blocks(t.k));
        y = take<float>(rows * t.n);
        CHECK(fill_bf16(s, w, numbers, 0.02f, 1));
        CHECK(fill_e4m3(s, w_code, numbers, 2));
        CHECK(fill_f32(s, w_scale, scales, 1e-4f, 1e-5f, 3));
        CHECK(fill_bf16(s, x, rows * t.k, 1, 4));
    }
    ~timed_product() {
        for (void *p : owned)
            cudaFree(p);
    }

    device::gemm_args args_of(int rows) {
        device::gemm_args a = {};
        a.w_group = static_cast<int64_t>(t.n) * t.k;
        a.x = x;
        a.x_row = t.k;
        a.y = y;
        a.y_row = t.end == device::ends_gate ? t.n / 2 : t.n;
        a.groups = groups;
        a.rows = rows;
        a.n = t.n;
        a.k = t.k;
        a.factor = 1;
        a.end = t.end;
        a.x_rows = pairs = rows * std::max(t.chosen, 1);
        used = 1;
        if (t.experts)
            choose(rows, &a);
        return a;
    }

    /* Each row chooses experts at random. */
    void choose(int rows, device::gemm_args *a) {
        std::vector<std::vector<int>> of(static_cast<size_t>(t.experts));
        std::vector<int> first = {0}, active, list;
        for (int i = 0; i < rows; i++)
            for (int c = 0; c < t.chosen;) {
                auto &e = of[mix(static_cast<uint64_t>(i) * 64 + list.size() * 977 + c) %
                             static_cast<size_t>(t.experts)];
                list.push_back(0); /* changes the next number */
                if (e.empty() || e.back() != i) {
                    e.push_back(i);
                    c++;
                }
            }
        list.clear();
        for (int e = 0; e < t.experts; e++) {
            const auto &own = of[static_cast<size_t>(e)];
            if (!own.empty())
                active.push_back(e);
            list.insert(list.end(), own.begin(), own.end());
            first.push_back(static_cast<int>(list.size()));
        }
        used = static_cast<int>(active.size());
        std::vector<int> places(list.size()), count(static_cast<size_t>(rows));
        for (size_t i = 0; i < list.size(); i++) {
            const auto row = static_cast<size_t>(list[i]);
            places[row * t.chosen + count[row]++] = static_cast<int>(i);
        }
        place = upload(places);
        a->listed = true;
        a->experts = {
            upload(first), upload(active), upload(std::vector<int>{used}), upload(list), 0, 0,
            false};
    }
};

/* Returns @a with e4m3 weights, and with the e4m3 activations that quantise() writes. */
inline device::gemm_args with_codes(timed_product &p, device::gemm_args a) {
    a.w_codes = {p.w_code, p.w_scale};
    a.w_uniform = true; /* this changes the results for these scales, but not the time */
    a.x_codes = {p.x_code, p.x_scale};
    a.partial = test_sums();
    return a;
}

/* In a model, the second product of experts has one row of x for each pair. */
inline cudaError_t quantise(const device::stream_of &s, timed_product &p,
                            const device::gemm_args &a) {
    const bool has_pairs = a.listed && a.end != device::ends_gate;
    return quantise_rows(s, {p.x, a.x_row, nullptr, has_pairs ? p.pairs : a.rows, a.k, p.x_code,
                             p.x_scale, p.pairs, a.listed && !has_pairs ? p.place : nullptr,
                             p.t.chosen});
}

inline cudaError_t to_fp16(const device::stream_of &s, timed_product &p,
                           const device::gemm_args &a) {
    return rows_to_fp16(
        s, {p.x, a.x_row, nullptr, a.rows, a.k, reinterpret_cast<__half *>(p.x_code), p.x_scale});
}

/* The product of e4m3 weights and the e4m3 activations that quantise() wrote. */
inline cudaError_t run_quantised(const device::stream_of &s, const device::gemm_args &a) {
    if (a.listed)
        return gemm_expert_codes(s, a);
    return suits_stream_k(a) ? gemm_stream_k(s, a) : gemm_many_codes(s, a);
}

/* Converts the activations and computes the product, as product.cu does. */
inline cudaError_t run_codes(const device::stream_of &s, timed_product &p,
                             const device::gemm_args &args) {
    device::gemm_args a = with_codes(p, args);
    if (a.rows <= 8) {
        a.x_fp16 = {reinterpret_cast<__half *>(p.x_code), p.x_scale};
        const cudaError_t e = to_fp16(s, p, a);
        return e == cudaSuccess ? gemm_few_codes(s, a) : e;
    }
    const cudaError_t e = quantise(s, p, a);
    return e == cudaSuccess ? run_quantised(s, a) : e;
}

inline cudaError_t run_bf16(const device::stream_of &s, timed_product &p, device::gemm_args a,
                            device::cublaslt *library) {
    a.w = p.w;
    if (a.rows <= 8)
        return gemm_few(s, a);
    if (!a.listed)
        return a.end != device::ends_gate && library && cublaslt_gemm(library, s, a)
                   ? cudaSuccess
                   : gemm_many(s, a);
    a.x = p.gathered;
    const cudaError_t e =
        gather(s, p.x, a.k, a.experts.row, a.experts.first, a.groups, p.pairs, a.k, p.gathered);
    a.experts.row = nullptr;
    return e == cudaSuccess ? gemm_many(s, a) : e;
}

inline void time_rows(const device::stream_of &s, timed_product &p, int rows, const ceilings &c,
                      device::cublaslt *library) {
    const timed_size &t = p.t;
    const device::gemm_args a = p.args_of(rows);
    const double us = median_us(s, [&] { return run_codes(s, p, a); }),
                 bf16 = median_us(s, [&] { return run_bf16(s, p, a, library); });
    const double numbers = static_cast<double>(p.used) * t.n * t.k,
                 flop = 2.0 * p.pairs * t.n * t.k;
    printf("%-12s %5d x %5d %5d rows %3d experts  %8.1f us %6.0f GB/s %3.0f %%  %6.0f TFLOPS "
           "%3.0f %%   bf16 %8.1f us %6.0f GB/s %6.0f TFLOPS\n",
           t.name, t.n, t.k, a.rows, t.experts ? p.used : 0, us, numbers / us / 1e3,
           100 * numbers / us / c.bytes_us, flop / us / 1e6, 100 * flop / us / c.fp8_us, bf16,
           2 * numbers / bf16 / 1e3, flop / bf16 / 1e6);
}

/* Chooses the fastest of the algorithms that the library proposes, and prints a warning if its
 * result is wrong. False if there is no algorithm. */
inline bool choose_fastest(const device::stream_of &s, fp8_product &product,
                           const fp8_operands &o) {
    int best = -1;
    double least = 0;
    for (int i = 0; i < product.count(); i++) {
        product.use(i);
        if (product.run(s) != cudaSuccess)
            continue;
        const double us = median_us(s, [&] { return product.run(s); });
        if (best < 0 || us < least) {
            best = i;
            least = us;
        }
    }
    (void)cudaGetLastError(); /* clears the errors of algorithms that failed */
    if (best < 0)
        return false;
    product.use(best);
    CHECK(cudaMemsetAsync(o.y, 0xff, static_cast<size_t>(o.rows) * o.n * sizeof(device::bf16),
                          s.stream)); /* NaN */
    CHECK(product.run(s));
    if (!library_agrees(o))
        printf("cuBLASLt FP8: WRONG RESULT for %d x %d, %d rows\n", o.n, o.k, o.rows);
    return true;
}

inline void print_library(const char *name, double flop, double us, double ours) {
    if (us > 0)
        printf(", %s %5.0f TFLOPS (ours %3.0f %%)", name, flop / us / 1e6, 100 * us / ours);
    else
        printf(", %s none", name);
}

/* Measures quantising, our product of codes, both of them together, and the library's products of
 * the same codes. Each time is the median of TURNS medians. The measurements take turns, so that
 * the limit of power acts on all of them.
 *
 * Our speed as a share of the library's does not include quantising, because the library gets
 * codes. Our products also multiply by the scales. They write FP32 or, with a gate, half as many
 * numbers in BF16. The library writes BF16. */
inline void compare_library(const device::stream_of &s, timed_product &p, int rows,
                            const library_fp8 &library) {
    enum { QUANTISE, PRODUCT, BOTH, FAST, PROMOTED, RUNS, TURNS = 3 };
    const timed_size &t = p.t;
    const device::gemm_args a = with_codes(p, p.args_of(rows));
    const fp8_operands o = {p.w_code, p.x_code, p.y, t.n, t.k, rows};
    CHECK(quantise(s, p, a));
    fp8_product fast(library, o, true), promoted(library, o, false);
    const bool has[RUNS] = {true, true, true, choose_fastest(s, fast, o),
                            choose_fastest(s, promoted, o)};
    const std::function<cudaError_t()> run[RUNS] = {
        [&] { return quantise(s, p, a); }, [&] { return run_quantised(s, a); },
        [&] { return run_codes(s, p, a); }, [&] { return fast.run(s); },
        [&] { return promoted.run(s); }};
    double us[RUNS][TURNS] = {};
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < RUNS; i++)
            us[i][turn] = has[i] ? median_us(s, run[i]) : 0;
    for (double(&times)[TURNS] : us)
        std::sort(times, times + TURNS);
    const int mid = TURNS / 2;
    const double flop = 2.0 * rows * t.n * t.k, ours = us[PRODUCT][mid];
    printf("%-12s %5d x %5d %5d rows  product of codes %7.1f us %5.0f TFLOPS, quantising %5.1f us, "
           "both %5.0f TFLOPS; cuBLASLt",
           t.name, t.n, t.k, rows, ours, flop / ours / 1e6, us[QUANTISE][mid],
           flop / us[BOTH][mid] / 1e6);
    print_library("fast", flop, us[FAST][mid], ours);
    print_library("promoted", flop, us[PROMOTED][mid], ours);
    printf("\n");
}

/* The shortest time in us, over several kernels, to read the weights of a dense product and do
 * nothing else. It includes the launch. A product of few rows cannot be much faster. */
inline double reading_us(const device::stream_of &s, const timed_product &p) {
    const int pages = p.t.n * p.t.k / PROBE_PAGE;
    std::vector<int> order;
    for (int i = 0; i < pages; i++)
        order.push_back(i);
    uint32_t *never = allocate<uint32_t>(1);
    int *in_order = upload(order);
    const read_memory m = {p.w_code, nullptr, pages, never},
                      by_page = {p.w_code, in_order, pages, never};
    double best = median_us(s, [&] { return probe_read_bulk(by_page, s.sms, s.stream); });
    for (const int ahead : {2, 4, 8})
        for (const int blocks : {2, 4, 8})
            best = std::min(best, median_us(s, [&] {
                                return probe_read_plain(m, s.sms, ahead, blocks, s.stream);
                            }));
    CHECK(cudaFree(never));
    CHECK(cudaFree(in_order));
    return best;
}

inline void time_size(const device::stream_of &s, const timed_size &t, const ceilings &c,
                      device::cublaslt *bf16_library, const library_fp8 &fp8_library) {
    static const std::vector<int> of_experts = {1, 8, 64, 128, 4096},
                                  dense = {1, 8, 16, 32, 64, 128, 256, 4096};
    timed_product p(s, t);
    for (const int rows : t.experts ? of_experts : dense)
        time_rows(s, p, rows, c, bf16_library);
    const device::gemm_args eight = p.args_of(8);
    const double converting = median_us(s, [&] { return to_fp16(s, p, eight); });
    printf("%-12s   of which converting 8 rows of %d to FP16: %.1f us\n", t.name, t.k, converting);
    if (t.experts)
        return;
    printf("%-12s   a kernel that only reads its %.0f MB of weights: %.1f us\n", t.name,
           1e-6 * t.n * t.k, reading_us(s, p));
    for (const int rows : {64, 128, 4096})
        compare_library(s, p, rows, fp8_library);
}

inline void time_all(const device::stream_of &s) {
    static const timed_size sizes[] = {
        {"dense in", 36864, 7168, device::ends_gate, 0, 0},
        {"dense out", 7168, 18432, device::ends_add_f32, 0, 0},
        {"o", 7168, 16384, device::ends_add_f32, 0, 0},
        {"q_b", 24576, 1536, device::ends_f32, 0, 0},
        {"in", 2112, 7168, device::ends_f32, 0, 0},
        {"experts in", 4096, 7168, device::ends_gate, 256, 8},
        {"experts out", 7168, 2048, device::ends_f32, 256, 8},
    };
    const ceilings c = measure_ceilings(s);
    device::cublaslt *library = device::cublaslt_open();
    const library_fp8 fp8_library;
    printf("cuBLASLt: %s\n", library ? "used for BF16 products without a gate" : "missing");
    if (fp8_library.usable)
        printf("cuBLASLt FP8: version %zu, the fastest of its first algorithms, with fast "
               "accumulation and with sums promoted to FP32\n",
               fp8_library.version());
    else
        printf("cuBLASLt FP8: missing\n");
    for (const timed_size &t : sizes)
        time_size(s, t, c, library, fp8_library);
    device::cublaslt_close(library);
}

} // namespace codes
