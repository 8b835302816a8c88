/* check_portable - tests the portable kernel against the FP64 judge on the host, and measures its
 * time.
 *
 *   check_portable check
 *       exit 1 if any figure is out of bounds; runs with all shared memory, then with 99 KB
 *   check_portable time bf16|fp8 H,s_q,batch,context ...
 *
 * If the environment variable LITTLE_MEMORY is set, all runs have 99 KB of shared memory. */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cuda/c_contract.h"
#include "kernels/cuda/portable/portable_launch.h"
#include "kernels/cuda/test/device_data.cuh"
extern "C" {
#include "kernels/judge.h"
}

namespace {

/* FP8: bf16 holds e4m3 exactly, so only P x a_k and the output are rounded to bf16, each by at most
 * 2^-8 of its value. BF16: the largest P is 1, which is exact. */
constexpr double kBf16Bound = 2.5e-3, kFp8Bound = 0x1p-8, kLseBound = 1e-5;

struct problem {
    mla_precision precision;
    int d_c, d_r, heads, s_q, splits;
    std::vector<int32_t> lengths;
    bool spoilt = false; /* every other row of queries has a NaN, so all its scores are NaN */
};

uint16_t bf16(float x) {
    return __bfloat16_as_ushort(__float2bfloat16(x));
}

/* Rows in the layout of mla.h, quantised for MLA_FP8. */
struct planes {
    std::vector<uint8_t> content, rope;
    std::vector<float> scale;
};

template <typename T>
void append(std::vector<uint8_t> &to, T x) {
    const auto *bytes = reinterpret_cast<const uint8_t *>(&x);
    to.insert(to.end(), bytes, bytes + sizeof(T));
}

planes random_planes(const problem &w, int64_t rows, uint64_t seed) {
    std::mt19937_64 rng(seed);
    std::normal_distribution<float> normal;
    planes out;
    std::vector<float> x(w.d_c + w.d_r);
    for (int64_t i = 0; i < rows; i++) {
        float most = 1e-10f;
        const float size = exp2f(normal(rng));
        for (auto &v : x)
            v = normal(rng) * size;
        for (int d = 0; d < w.d_c; d++)
            most = std::max(most, std::fabs(x[d]));
        const bool fp8 = w.precision == MLA_FP8;
        const float a = most / 448;
        for (int d = 0; d < w.d_c; d++)
            if (fp8)
                append(out.content, __nv_fp8_e4m3(x[d] / a).__x);
            else
                append(out.content, bf16(x[d]));
        for (int d = w.d_c; d < w.d_c + w.d_r; d++)
            append(fp8 ? out.rope : out.content, bf16(fp8 ? x[d] / a : x[d]));
        out.scale.push_back(a);
    }
    return out;
}

template <typename T>
T *room(size_t n) {
    return upload(std::vector<T>(n));
}

/* A step with its data on the host and on the device. */
struct setup {
    problem want;
    int batch, width;
    int64_t pages, rows;
    planes cache, queries;
    std::vector<int32_t> table;
    decode_args args;
    std::vector<void *> owned;
};

/* Fills cache and table. Content and scales of slots past the end of a sequence are NaN, and table
 * entries past it are invalid. */
void lay_out(setup &s) {
    const problem &w = s.want;
    const int longest = *std::max_element(w.lengths.begin(), w.lengths.end());
    s.batch = static_cast<int>(w.lengths.size());
    s.rows = static_cast<int64_t>(s.batch) * w.heads * w.s_q;
    s.width = (longest + PAGE - 1) / PAGE + 1;
    s.pages = static_cast<int64_t>(s.batch) * s.width;
    std::vector<int32_t> order(s.pages);
    for (int64_t i = 0; i < s.pages; i++)
        order[i] = static_cast<int32_t>(i);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(3));
    s.table = order;
    s.cache = random_planes(w, s.pages * PAGE, 1);
    s.queries = random_planes(w, s.rows, 2);
    const size_t bytes = s.cache.content.size() / (s.pages * PAGE);
    for (int b = 0; b < s.batch; b++)
        for (int t = 0; t < s.width * PAGE; t++) {
            const int64_t entry = static_cast<int64_t>(b) * s.width + t / PAGE;
            const int64_t slot = static_cast<int64_t>(order[entry]) * PAGE + t % PAGE;
            if (t < w.lengths[b])
                continue;
            memset(&s.cache.content[slot * bytes], 0xff, bytes);
            s.cache.scale[slot] = NAN;
            if (t / PAGE * PAGE >= w.lengths[b])
                s.table[entry] = t / PAGE % 2 ? -7 : 1 << 30;
        }
}

/* Puts a NaN into the content of rows 0, 2, 4, ... of the queries. */
void spoil_queries(setup &s) {
    const problem &w = s.want;
    const size_t bytes = s.queries.content.size() / s.rows;
    for (int64_t row = 0; row < s.rows; row += 2) {
        uint8_t *content = &s.queries.content[row * bytes];
        if (w.precision == MLA_FP8)
            content[3] = 0x7f;
        else
            content[2 * 3] = 0xc0, content[2 * 3 + 1] = 0x7f;
    }
}

setup make(const problem &w) {
    setup s = {};
    s.want = w;
    lay_out(s);
    if (w.spoilt)
        spoil_queries(s);
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    decode_args &a = s.args;
    const bool fp8 = w.precision == MLA_FP8;
    auto *content = upload(s.cache.content), *rope = upload(s.cache.rope);
    auto *scale = upload(s.cache.scale), *q_scale = upload(s.queries.scale);
    auto *q = upload(s.queries.content), *q_rope = upload(s.queries.rope);
    auto *table = upload(s.table), *lengths = upload(w.lengths);
    a.precision = w.precision;
    a.heads = w.heads;
    a.d_c = w.d_c;
    a.d_r = w.d_r;
    a.cache = {s.pages, content, fp8 ? rope : nullptr, fp8 ? scale : nullptr};
    a.step = {s.batch, w.s_q, lengths, table, s.width};
    a.attn = {q,
              fp8 ? q_rope : nullptr,
              fp8 ? q_scale : nullptr,
              static_cast<float>(1 / sqrt(192.0)),
              room<uint16_t>(s.rows * w.d_c),
              room<float>(s.rows)};
    a.may_cut = w.splits != 1;
    a.grid = {PORTABLE_TILE_TOKENS, portable_parts(device.multiProcessorCount, w.heads, w.s_q), 0};
    const int items = sched_max_items(s.batch, a.grid.parts, w.splits);
    const size_t slots = w.splits ? items : 2 * a.grid.parts, rows = slots * w.heads * w.s_q;
    decode_workspace &work = a.work;
    work.metadata = {room<sched_item>(items), room<sched_part>(a.grid.parts),
                     room<sched_cut>(s.batch), room<int>(1)};
    work.partial_out = room<float>(rows * w.d_c);
    work.partial_lse = room<float>(rows);
    s.owned = {content,
               rope,
               scale,
               q_scale,
               q,
               q_rope,
               table,
               lengths,
               a.attn.out,
               a.attn.lse,
               work.metadata.items,
               work.metadata.parts,
               work.metadata.cuts,
               work.metadata.cut_count,
               work.partial_out,
               work.partial_lse};
    CHECK(sched_launch(work.metadata, lengths, s.batch, s.width * PAGE, a.grid.tile, a.grid.parts,
                       w.splits, 0));
    CHECK(cudaDeviceSynchronize());
    return s;
}

void destroy(setup &s) {
    for (void *p : s.owned)
        CHECK(cudaFree(p));
}

struct results {
    std::vector<uint16_t> out;
    std::vector<float> lse;
};

results run(const setup &s) {
    results r = {std::vector<uint16_t>(s.rows * s.want.d_c), std::vector<float>(s.rows)};
    CHECK(cudaMemset(s.args.attn.out, 0xff, r.out.size() * 2));
    CHECK(cudaMemset(s.args.attn.lse, 0xff, r.lse.size() * 4));
    CHECK(portable_launch(s.args, 0));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(r.out.data(), s.args.attn.out, r.out.size() * 2, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(r.lse.data(), s.args.attn.lse, r.lse.size() * 4, cudaMemcpyDeviceToHost));
    return r;
}

/* Runs and judges one problem. The judge reads only table entries of pages that exist. */
bool report(const problem &w) {
    setup s = make(w);
    results once = run(s), twice = run(s);
    const bool same = once.out == twice.out &&
                      !memcmp(once.lse.data(), twice.lse.data(), once.lse.size() * sizeof(float));
    judge_step in = {};
    in.precision = w.precision;
    in.heads = w.heads;
    in.d_c = w.d_c;
    in.d_r = w.d_r;
    in.step = {s.batch, w.s_q, w.lengths.data(), s.table.data(), s.width};
    in.cache = {s.pages, s.cache.content.data(), s.cache.rope.data(), s.cache.scale.data()};
    in.attn = {s.queries.content.data(), s.queries.rope.data(), s.queries.scale.data(),
               s.args.attn.softmax_scale, once.out.data(), once.lse.data()};
    if (w.precision == MLA_BF16)
        in.cache.rope = nullptr, in.cache.scale = nullptr;
    judge_error e;
    snap_err err = {};
    if (judge_rows(&e, &in, REF_P_EXACT, {96, 1}, &err) != SNAP_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    const double bound = w.precision == MLA_FP8 ? kFp8Bound : kBf16Bound;
    const bool good = e.nonfinite == 0 && same && e.out_rel <= bound && e.lse_err <= kLseBound;
    printf("%s %d+%d H%d s_q%d b%d max%d splits%d: out %.2e row %.2e lse %.1e same %d %s\n",
           mla_precision_name(w.precision), w.d_c, w.d_r, w.heads, w.s_q, s.batch,
           *std::max_element(w.lengths.begin(), w.lengths.end()), w.splits, e.out_rel, e.row_rel,
           e.lse_err, same, good ? "ok" : "WRONG");
    fflush(stdout);
    destroy(s);
    return good;
}

/* A row whose scores are all NaN must be NaN, in one part or in many, and no other row may change.
 * A merge that takes such a row for one without a visible token writes zeros. */
bool nan_rows(problem w) {
    setup good = make(w);
    w.spoilt = true;
    setup bad = make(w);
    const results want = run(good), have = run(bad);
    int64_t wrong = 0, spoilt = 0;
    for (int64_t row = 0; row < good.rows; row++) {
        const int64_t each = static_cast<int64_t>(w.heads) * w.s_q, i = row % each;
        const int64_t seen = w.lengths[row / each] - (w.s_q - 1 - i / w.heads);
        const bool is_spoilt = seen > 0 && row % 2 == 0;
        bool right = is_spoilt ? std::isnan(have.lse[row])
                               : !memcmp(&have.lse[row], &want.lse[row], sizeof(float));
        for (int d = 0; d < w.d_c; d++) {
            const uint16_t x = have.out[row * w.d_c + d];
            right &= is_spoilt ? (x & 0x7fff) > 0x7f80 : x == want.out[row * w.d_c + d];
        }
        wrong += !right;
        spoilt += is_spoilt;
    }
    printf("%s %d+%d H%d s_q%d b%d splits%d: %lld rows of NaN scores, %lld rows wrong: %s\n",
           mla_precision_name(w.precision), w.d_c, w.d_r, w.heads, w.s_q, good.batch, w.splits,
           static_cast<long long>(spoilt), static_cast<long long>(wrong), wrong ? "WRONG" : "ok");
    destroy(good);
    destroy(bad);
    return !wrong && spoilt;
}

bool check_all() {
    const std::vector<int32_t> ragged = {0, 1, 31, 32, 33, 64, 65, 127, 500, 1500};
    bool good = true;
    for (const mla_precision precision : {MLA_BF16, MLA_FP8}) {
        const int widths[][2] = {{512, 64}, {256, 32}, {32, 32}, {96, 64}, {480, 256}};
        for (const auto &d : widths) {
            good &= report({precision, d[0], d[1], 16, 1, 0, ragged});
            good &= report({precision, d[0], d[1], 5, 3, 3, {0, 2, 66, 700}});
        }
        good &= report({precision, 512, 64, 128, 1, 1, {65, 400}});
        good &= report({precision, 512, 64, 128, 4, 0, {3, 130}});
        good &= report({precision, 512, 64, 1, 1, 0, {20000}});
        for (const int splits : {1, 3, 64, 0}) {
            good &= nan_rows({precision, 512, 64, 16, 1, splits, ragged});
            good &= nan_rows({precision, 512, 64, 5, 2, splits, {1900}});
        }
    }
    return good;
}

/* Prints the median time of 15 launches with a cold L2 cache. */
bool time_one(mla_precision precision, const char *text) {
    int context, batch;
    problem w = {precision, 512, 64, 0, 0, 0, {}};
    if (sscanf(text, "%d,%d,%d,%d", &w.heads, &w.s_q, &batch, &context) != 4)
        return false;
    w.lengths.assign(batch, context);
    setup s = make(w);
    enum { kReps = 15 };
    const auto times = time_cold(kReps, [&] { CHECK(portable_launch(s.args, 0)); });
    const double us = static_cast<double>(times[kReps / 2]);
    const double tokens = static_cast<double>(batch) * context;
    printf("%s (%s) %9.1f us  %6.0f TFLOPS  %6.0f GB/s\n", mla_precision_name(precision), text, us,
           tokens * w.heads * w.s_q * 2176 / us * 1e-6,
           tokens * static_cast<double>(mla_cache_token_bytes(precision, 512, 64)) / us * 1e-3);
    fflush(stdout);
    destroy(s);
    return true;
}

} // namespace

/* the shared memory per CTA of compute capability 8.6, 8.9 and 12.0 */
constexpr int kLittleMemory = 99 << 10;

bool check_twice() {
    const bool good = check_all();
    CHECK(portable_init(kLittleMemory));
    printf("with %d bytes of shared memory:\n", kLittleMemory);
    return check_all() && good;
}

int main(int argc, char **argv) {
    const char *little = getenv("LITTLE_MEMORY");
    CHECK(portable_init(little ? kLittleMemory : 0));
    if (argc == 2 && !strcmp(argv[1], "check"))
        return check_twice() ? 0 : 1;
    bool good = argc > 3 && !strcmp(argv[1], "time");
    for (int i = 3; i < argc && good; i++)
        good = time_one(strcmp(argv[2], "fp8") ? MLA_BF16 : MLA_FP8, argv[i]);
    if (!good)
        fprintf(stderr, "usage: check_portable check | time bf16|fp8 H,s_q,batch,context ...\n");
    return good ? 0 : 2;
}
