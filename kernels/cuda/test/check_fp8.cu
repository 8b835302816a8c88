/* check_fp8 - tests the FP8 kernel against FP64 on the device, and measures its time.
 *
 *   check_fp8 check                  runs all cases; exit 1 if any figure is out of bounds
 *   check_fp8 few                    runs only the cases for at most 32 rows
 *   check_fp8 time H,s_q,batch,context[,tile] ...    tile: rows per CTA
 *   check_fp8 once H,s_q,batch,context[,tile] ...    for a profiler: five launches of the schedule
 *                                                    and four of the kernel for each shape
 * Before these words, unit=RULE chooses how the kernel was compiled. kept, the default: the unit of
 * P is kept over pages. page: each page has its own unit. order: as page, and the second page of a
 * tile is added before the first. */
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cuda/sm90_ablation/ablation.h"
#include "kernels/cuda/sm90_fp8/fp8_launch.h"
#include "kernels/cuda/test/device_data.cuh"

namespace {

/* The kernel under test, compiled for one rule of the unit of P. */
const struct variant {
    const char *name;
    bool page_units;
    cudaError_t (*init)(void);
    cudaError_t (*launch)(const decode_args &args, cudaStream_t stream);
} variants[] = {
    {"unit=kept", false, fp8_decode_init, fp8_decode_launch},
    {"unit=page", true, page_units_decode_init, page_units_decode_launch},
    {"unit=order", true, page_order_decode_init, page_order_decode_launch},
};
const variant *tested = variants;

struct problem {
    int heads, s_q, batch;
    std::vector<int> lengths;
    distribution kind;
    int splits;
    int64_t pages; /* pages in the pool; 0 = the needed number, one eighth and two more */
    int tile_rows; /* rows per CTA; 0 = the kernel's choice for long sequences */
};

struct setup {
    problem want;
    decode_args args;
    int *seqlens;
    std::vector<int> table;
    std::vector<void *> owned;
    int width;
    int64_t pages, slots; /* slots: for all tiles of rows together */
};

int sms() {
    int n;
    CHECK(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0));
    return n;
}

/* The grid of a step with tiles of w.tile_rows rows: increases the number of pages until fp8_grid()
 * chooses that height. */
decode_grid grid_of(const problem &w) {
    const int64_t any = 1 << 20;
    for (int64_t pages = w.tile_rows ? 1 : any; pages <= any; pages++) {
        const decode_grid grid = fp8_grid(sms(), w.heads, w.s_q, {1, pages});
        if (!w.tile_rows || grid.tile_rows == w.tile_rows)
            return grid;
    }
    fprintf(stderr, "no step of %d x %d rows has tiles of %d\n", w.heads, w.s_q, w.tile_rows);
    exit(2);
}

__global__ void poison(uint8_t *content, __nv_bfloat16 *rope, float *scale, const int *slots,
                       int n) {
    const int64_t slot = slots[blockIdx.x];
    for (int d = threadIdx.x; d < D_C; d += blockDim.x)
        content[slot * D_C + d] = 0x7f;
    for (int d = threadIdx.x; d < D_R; d += blockDim.x)
        rope[slot * D_R + d] = __float2bfloat16(NAN);
    if (threadIdx.x == 0)
        scale[slot] = NAN;
}

void schedule(const setup &s) {
    const decode_args &a = s.args;
    CHECK(sched_launch(a.work.metadata, s.seqlens, a.step.batch, s.width * PAGE, a.grid.tile,
                       a.grid.parts, s.want.splits, 0, a.step.block_table, s.width));
}

setup make(const problem &w, uint64_t seed) {
    setup s = {};
    s.want = w;
    int longest = 1;
    int64_t need = 0;
    for (int n : w.lengths) {
        longest = std::max(longest, n);
        need += (n + PAGE - 1) / PAGE;
    }
    s.width = (longest + PAGE - 1) / PAGE + 1;
    s.pages = w.pages ? w.pages : need + need / 8 + 2;
    std::vector<int> order(s.pages);
    for (int64_t i = 0; i < s.pages; i++)
        order[i] = static_cast<int>(i);
    std::mt19937_64 rng(seed);
    std::shuffle(order.begin(), order.end(), rng);
    s.table.assign(static_cast<size_t>(w.batch) * s.width, 0);
    std::vector<int> unused;
    int64_t at = 0;
    for (int b = 0; b < w.batch; b++) {
        const int pages = (w.lengths[b] + PAGE - 1) / PAGE;
        for (int i = 0; i < s.width; i++)
            s.table[static_cast<size_t>(b) * s.width + i] =
                i < pages ? order[at + i] : (i % 2 ? -7 : 1 << 30);
        for (int t = w.lengths[b]; t < pages * PAGE; t++)
            unused.push_back(order[at + t / PAGE] * PAGE + t % PAGE);
        at += pages;
    }
    if (!w.pages)
        for (; at < s.pages; at++)
            for (int t = 0; t < PAGE; t++)
                unused.push_back(order[at] * PAGE + t);
    const int rows = w.heads * w.s_q;
    const int64_t tokens = s.pages * PAGE, all_rows = static_cast<int64_t>(rows) * w.batch;
    auto *content = allocate<uint8_t>(tokens * D_C);
    auto *rope = allocate<__nv_bfloat16>(tokens * D_R);
    auto *scale = allocate<float>(tokens);
    auto *q = allocate<uint8_t>(all_rows * D_C);
    auto *q_rope = allocate<__nv_bfloat16>(all_rows * D_R);
    auto *q_scale = allocate<float>(all_rows);
    fill_fp8<<<4096, 256>>>(content, rope, scale, tokens, w.kind, seed, false);
    fill_fp8<<<1024, 256>>>(q, q_rope, q_scale, all_rows, w.kind, seed + 99, true);
    int *bad = upload(unused);
    if (!unused.empty())
        poison<<<static_cast<unsigned>(unused.size()), 128>>>(content, rope, scale, bad, 0);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(bad));
    decode_args &a = s.args;
    a.precision = MLA_FP8;
    a.heads = w.heads;
    a.d_c = D_C;
    a.d_r = D_R;
    a.cache = {s.pages, content, rope, scale};
    s.seqlens = upload(w.lengths);
    a.step = {w.batch, w.s_q, s.seqlens, upload(s.table), s.width};
    a.attn = {q,
              q_rope,
              q_scale,
              static_cast<float>(1 / sqrt(192.0)),
              allocate<__nv_bfloat16>(all_rows * D_C),
              allocate<float>(all_rows)};
    a.may_cut = w.splits != 1;
    a.grid = grid_of(w);
    const int items = sched_max_items(w.batch, a.grid.parts, w.splits);
    const int64_t slots = w.splits ? static_cast<int64_t>(items) : 2 * a.grid.parts;
    s.slots = slots * fp8_row_tiles(a.grid, w.heads, w.s_q);
    decode_workspace &work = a.work;
    work.metadata = {allocate<sched_item>(items), allocate<sched_part>(a.grid.parts),
                     allocate<sched_cut>(w.batch), allocate<int>(1)};
    work.partial_out = allocate<uint8_t>(slots * rows * FP8_PARTIAL_BYTES);
    work.partial_lse = allocate<float>(slots * rows);
    work.few_partials = allocate<uint8_t>(s.slots * FP8_FEW_BYTES);
    CHECK(cudaMemset(work.few_partials, 0xff, s.slots * FP8_FEW_BYTES));
    work.counters = upload(std::vector<int>(s.slots));
    s.owned = {content,
               rope,
               scale,
               q,
               q_rope,
               q_scale,
               s.seqlens,
               const_cast<int *>(a.step.block_table),
               a.attn.out,
               a.attn.lse,
               work.metadata.items,
               work.metadata.parts,
               work.metadata.cuts,
               work.metadata.cut_count,
               work.partial_out,
               work.partial_lse,
               work.counters,
               work.few_partials};
    schedule(s);
    CHECK(cudaDeviceSynchronize());
    return s;
}

void destroy(setup &s) {
    for (void *p : s.owned)
        CHECK(cudaFree(p));
}

int items_of(const setup &s) {
    sched_part last;
    CHECK(cudaMemcpy(&last, s.args.work.metadata.parts + s.args.grid.parts - 1, sizeof last,
                     cudaMemcpyDeviceToHost));
    return last.last;
}

/* Counts the words that a launch did not reset for the next one. Partial results of few rows must
 * be marked absent, and counters must be zero. A word that was not reset may not change the result
 * of the same step, but may make the result of another step wrong. */
int64_t left_behind(const setup &s) {
    const decode_workspace &work = s.args.work;
    const auto partials = download(static_cast<const uint32_t *>(work.few_partials),
                                   s.slots * FP8_FEW_BYTES / sizeof(uint32_t));
    const auto counters = download(work.counters, s.slots);
    const int64_t taken = std::count(partials.begin(), partials.end(), ~0u),
                  zero = std::count(counters.begin(), counters.end(), 0);
    return static_cast<int64_t>(partials.size() + counters.size()) - taken - zero;
}

/* Errors of the rows that were compared. exact and rounded are the errors of all rows together. The
 * others are the largest error of one row. lse is measured against exact scores, and lse_excess is
 * the part of it that the sums of the tensor cores do not explain. lse_alike is measured against
 * scores that are summed as the tensor cores sum them. */
struct result {
    double exact, rounded, worst, lse, lse_alike, lse_excess;
    int bad;
    int64_t left;
    bool same;
};

result check(setup &s, int sample) {
    const problem &w = s.want;
    const int rows = w.heads * w.s_q * w.batch;
    const size_t bytes = static_cast<size_t>(rows) * D_C * 2;
    std::vector<uint8_t> once(bytes), twice(bytes);
    result r = {};
    for (int i = 0; i < 2; i++) {
        CHECK(cudaMemset(s.args.attn.out, 0xff, bytes));
        CHECK(cudaMemset(s.args.attn.lse, 0xff, rows * 4));
        CHECK(cudaMemset(s.args.work.partial_lse, 0xff, 4));
        CHECK(tested->launch(s.args, 0));
        CHECK(cudaDeviceSynchronize());
        CHECK(
            cudaMemcpy((i ? twice : once).data(), s.args.attn.out, bytes, cudaMemcpyDeviceToHost));
        r.left += left_behind(s);
    }
    std::vector<int> chosen(rows);
    for (int i = 0; i < rows; i++)
        chosen[i] = i;
    if (sample < rows) {
        std::mt19937_64 rng(5);
        std::shuffle(chosen.begin(), chosen.end(), rng);
        chosen.resize(sample);
    }
    const int n = static_cast<int>(chosen.size());
    int64_t longest = *std::max_element(w.lengths.begin(), w.lengths.end()) + 1;
    int *picked = upload(chosen);
    double *scores = allocate<double>(longest * n);
    verdict *verdicts = allocate<verdict>(n);
    const decode_args &a = s.args;
    judged j = {static_cast<const uint8_t *>(a.cache.content),
                static_cast<const __nv_bfloat16 *>(a.cache.rope),
                nullptr,
                a.cache.scale,
                static_cast<const uint8_t *>(a.attn.q),
                static_cast<const __nv_bfloat16 *>(a.attn.q_rope),
                nullptr,
                a.attn.q_scale,
                s.seqlens,
                a.step.block_table,
                a.step.table_width,
                a.heads,
                a.step.s_q,
                static_cast<double>(a.attn.softmax_scale),
                static_cast<const __nv_bfloat16 *>(a.attn.out),
                a.attn.lse,
                scores,
                longest,
                allocate<double>(longest * n),
                allocate<judged_page>((longest / PAGE + 2) * n),
                a.work.metadata.items,
                items_of(s),
                a.grid.tile.tokens / PAGE,
                tested->page_units};
    judge<<<n, 256>>>(j, picked, verdicts);
    CHECK(cudaDeviceSynchronize());
    std::vector<verdict> v(n);
    CHECK(cudaMemcpy(v.data(), verdicts, n * sizeof(verdict), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(picked));
    CHECK(cudaFree(scores));
    CHECK(cudaFree(j.alike));
    CHECK(cudaFree(j.page));
    CHECK(cudaFree(verdicts));
    double exact = 0, rounded = 0, norm = 0;
    for (auto &x : v) {
        exact += x.diff_exact;
        rounded += x.diff_rounded;
        norm += x.norm;
        r.worst = std::max(r.worst, x.row_worst);
        r.lse = std::max(r.lse, x.lse);
        r.lse_alike = std::max(r.lse_alike, x.lse_alike);
        r.lse_excess = std::max(r.lse_excess, x.lse - x.lse_bound);
        r.bad += static_cast<int>(x.bad);
    }
    r.exact = norm > 0 ? sqrt(exact / norm) : sqrt(exact);
    r.rounded = norm > 0 ? sqrt(rounded / norm) : sqrt(rounded);
    r.same = once == twice;
    return r;
}

bool report(const char *name, const problem &w, uint64_t seed) {
    setup s = make(w, seed);
    result r = check(s, 192);
    const bool good = r.bad == 0 && r.left == 0 && r.same && r.exact <= 3e-2 && r.rounded <= 1e-2 &&
                      r.lse_alike <= 5e-4 && r.lse_excess <= 5e-4;
    printf(
        "%-16s H%d s_q%d b%d max%d splits%d: exact %.2e row %.2e lse %.1e (over its bound %.1e)  "
        "alike %.2e lse %.1e  bad %d left %lld same %d %s\n",
        name, w.heads, w.s_q, w.batch, *std::max_element(w.lengths.begin(), w.lengths.end()),
        w.splits, r.exact, r.worst, r.lse, std::max(r.lse_excess, 0.0), r.rounded, r.lse_alike,
        r.bad, static_cast<long long>(r.left), r.same, good ? "ok" : "WRONG");
    fflush(stdout);
    destroy(s);
    return good;
}

/* Cases with at most 32 rows, which have their own kernels: one for 16 rows, one for 32. */
bool check_few() {
    const std::vector<int> ragged = {0, 1, 3, 63, 64, 65, 127, 129, 500, 4000};
    const int n = static_cast<int>(ragged.size());
    bool good = true;
    good &= report("one row", {1, 1, n, ragged, NORMAL, 0, 0}, 21);
    good &= report("2 rows", {1, 2, n, ragged, NORMAL, 3, 0}, 22);
    good &= report("8 rows", {4, 2, n, ragged, NORMAL, 0, 0}, 23);
    good &= report("16 rows", {4, 4, n, ragged, NORMAL, 1, 0}, 24);
    good &= report("17 rows", {17, 1, n, ragged, NORMAL, 0, 0}, 25);
    good &= report("30 rows", {10, 3, n, ragged, NORMAL, 5, 0}, 26);
    good &= report("32 rows", {8, 4, n, ragged, NORMAL, 0, 0}, 27);
    good &= report("32 rows, no cut", {16, 2, n, ragged, NORMAL, 1, 0}, 28);
    good &= report("few, mla", {16, 1, 4, equal(4, 4096), MLA, 0, 0}, 29);
    good &= report("few, wide", {16, 1, 4, equal(4, 4096), WIDE, 1, 0}, 30);
    good &= report("few, sink", {16, 1, 4, equal(4, 8192), SINK, 1, 0}, 31);
    good &= report("32, wide", {32, 1, 4, equal(4, 4096), WIDE, 1, 0}, 32);
    good &= report("32, sink", {8, 4, 4, equal(4, 8192), SINK, 0, 0}, 33);
    good &= report("few, 64k", {16, 1, 2, equal(2, 65536), NORMAL, 1, 0}, 34);
    std::vector<int> many(300);
    for (int i = 0; i < 300; i++)
        many[i] = static_cast<int>(mix(i) % 700);
    good &= report("few, many", {16, 1, 300, many, NORMAL, 0, 0}, 35);
    good &= report("few, items of a page", {16, 1, 120, equal(120, 300), NORMAL, 5, 0}, 55);
    good &= report("few, many, cut", {16, 1, 300, many, NORMAL, 4, 0}, 36);
    /* line schedule: a part may end one sequence and begin another */
    good &= report("few, line", {16, 1, 100, equal(100, 8192), NORMAL, 0, 0}, 37);
    std::vector<int> mixed(90);
    for (int i = 0; i < 90; i++)
        mixed[i] = static_cast<int>(mix(i) % 9000);
    good &= report("few, line, mixed", {4, 2, 90, mixed, NORMAL, 0, 0}, 38);
    good &= report("32, line", {32, 1, 100, equal(100, 8192), NORMAL, 0, 0}, 39);
    /* parts without items merge */
    good &= report("few, mergers", {16, 1, 1, {1024}, NORMAL, 0, 0}, 43);
    good &= report("32, mergers", {32, 1, 1, {4000}, NORMAL, 0, 0}, 44);
    good &= report("17, mergers", {17, 1, 2, {1000, 3000}, NORMAL, 0, 0}, 45);
    return good;
}

/* Cases with more rows than one tile of up to 16 or 32 rows has, as the kernel chooses such tiles
 * for steps with few pages. */
bool check_narrow() {
    const std::vector<int> ragged = {0, 1, 3, 63, 64, 65, 127, 129, 500, 4000};
    const int n = static_cast<int>(ragged.size());
    bool good = true;
    good &= report("64 in 16", {64, 1, n, ragged, NORMAL, 0, 0, 16}, 46);
    good &= report("64 in 32", {64, 1, n, ragged, NORMAL, 0, 0, 32}, 47);
    good &= report("32 in 16", {32, 1, n, ragged, NORMAL, 0, 0, 16}, 48);
    good &= report("causal in 16", {24, 4, n, ragged, NORMAL, 0, 0, 16}, 49);
    good &= report("causal in 32", {24, 4, n, ragged, NORMAL, 0, 0, 32}, 50);
    good &= report("256 in 16", {128, 2, 1, {1024}, NORMAL, 0, 0, 16}, 51);
    good &= report("512 in 16", {128, 4, 2, {130, 700}, WIDE, 0, 0, 16}, 52);
    good &= report("40 in 10", {40, 1, n, ragged, NORMAL, 0, 0, 10}, 56);
    good &= report("causal in 20", {10, 4, n, ragged, NORMAL, 0, 0, 20}, 57);
    good &= report("200 in 25", {100, 2, 3, {1000, 1, 2000}, NORMAL, 0, 0, 25}, 58);
    good &= report("128 in 32", {128, 1, 3, {1000, 0, 2000}, SINK, 0, 0, 32}, 53);
    /* more tiles than SMs: a CTA processes tiles of several sequences, one after the other */
    std::vector<int> many(120);
    for (int i = 0; i < 120; i++)
        many[i] = static_cast<int>(mix(i) % 300);
    good &= report("144 in 16, many", {48, 3, 120, many, NORMAL, 0, 0, 16}, 59);
    good &= report("64 in 32, many", {64, 1, 120, many, NORMAL, 0, 0, 32}, 60);
    /* line schedule: a part may end one sequence and begin another, in each of three tiles of
     * rows */
    std::vector<int> mixed(40);
    for (int i = 0; i < 40; i++)
        mixed[i] = static_cast<int>(mix(i) % 9000);
    good &= report("96 in 32, line", {24, 4, 40, mixed, NORMAL, 0, 0, 32}, 61);
    return good;
}

bool check_all() {
    bool good = true;
    good &= report("one token", {64, 1, 2, equal(2, 1), NORMAL, 0, 0}, 1);
    good &= report("one tile", {64, 1, 2, equal(2, 64), NORMAL, 1, 0}, 2);
    good &= report("two tiles", {128, 1, 2, equal(2, 128), NORMAL, 1, 0}, 3);
    good &= report("three tiles", {64, 1, 3, equal(3, 192), NORMAL, 1, 0}, 4);
    good &= report("ragged", {64, 1, 9, {0, 1, 63, 64, 65, 127, 500, 4000, 0}, NORMAL, 1, 0}, 5);
    good &=
        report("ragged, cut", {64, 1, 9, {0, 1, 63, 64, 65, 127, 500, 4000, 0}, NORMAL, 0, 0}, 6);
    good &= report("ragged, 5 parts",
                   {16, 1, 9, {0, 1, 63, 64, 65, 127, 500, 4000, 0}, NORMAL, 5, 0}, 7);
    good &= report("causal", {64, 2, 5, {1, 2, 65, 129, 3000}, NORMAL, 0, 0}, 8);
    good &= report("causal 4 x 24", {24, 4, 5, {0, 3, 64, 66, 2000}, NORMAL, 0, 0}, 9);
    good &= report("few heads", {16, 1, 3, {100, 1000, 10000}, NORMAL, 0, 0}, 10);
    good &= report("one head", {1, 1, 3, {100, 1000, 10000}, NORMAL, 0, 0}, 11);
    good &= report("no cut 4k", {128, 1, 4, equal(4, 4096), NORMAL, 1, 0}, 12);
    good &= report("cut 4k", {128, 1, 4, equal(4, 4096), NORMAL, 0, 0}, 13);
    good &= report("64k", {128, 1, 2, equal(2, 65536), NORMAL, 0, 0}, 14);
    good &= report("64k no cut", {64, 1, 2, equal(2, 65536), NORMAL, 1, 0}, 14);
    good &= report("mla 4k", {128, 1, 4, equal(4, 4096), MLA, 0, 0}, 15);
    good &= report("mla 64k", {64, 1, 2, equal(2, 65536), MLA, 1, 0}, 16);
    good &= report("wide 4k", {64, 1, 4, equal(4, 4096), WIDE, 1, 0}, 17);
    good &= report("sink 8k", {64, 1, 4, equal(4, 8192), SINK, 1, 0}, 18);
    const std::vector<int> uneven = {0, 1, 130, 700, 3000};
    good &= report("96 rows", {96, 1, 5, uneven, NORMAL, 0, 0}, 36);
    good &= report("150 rows", {50, 3, 5, uneven, NORMAL, 0, 0}, 37);
    good &= report("192 rows, no cut", {64, 3, 5, uneven, NORMAL, 1, 0}, 38);
    good &= report("256 rows", {128, 2, 5, uneven, NORMAL, 0, 0}, 39);
    good &= report("256 rows, sink", {128, 2, 2, equal(2, 8192), SINK, 5, 0}, 40);
    good &= report("128 rows, wide", {128, 1, 4, equal(4, 4096), WIDE, 0, 0}, 41);
    good &= check_few();
    good &= check_narrow();
    std::vector<int> many(300);
    for (int i = 0; i < 300; i++)
        many[i] = static_cast<int>(mix(i) % 700);
    good &= report("many", {64, 1, 300, many, NORMAL, 0, 0}, 19);
    good &= report("items of a tile", {64, 1, 120, equal(120, 600), NORMAL, 5, 0}, 54);
    good &= report("many, 128 rows", {128, 1, 300, many, NORMAL, 0, 0}, 42);
    return good;
}

/* Parses "H,s_q,batch,context" or "H,s_q,batch,context,tile". */
problem parse(const char *text) {
    int h, sq, b, ctx, tile;
    const int n = sscanf(text, "%d,%d,%d,%d,%d", &h, &sq, &b, &ctx, &tile);
    if (n < 4)
        exit(2);
    const int64_t pages = (ctx + 63) / 64;
    if (n == 4)
        tile = fp8_grid(sms(), h, sq, {b, pages}).tile_rows;
    return {h, sq, b, equal(b, ctx), NORMAL, 0, b * pages, tile};
}

void time_one(const char *text, bool once) {
    const problem w = parse(text);
    const int h = w.heads, sq = w.s_q, b = w.batch, ctx = w.lengths[0];
    setup s = make(w, 42);
    const int reps = once ? 2 : 25;
    const auto plan = time_cold(reps, [&] { schedule(s); });
    const auto us = time_cold(reps, [&] { CHECK(tested->launch(s.args, 0)); });
    const double tokens = double(b) * ctx, t = us[reps / 2];
    const double compute = tokens * 95.5e-6 * ((h * sq + 63) / 64), memory = tokens * 136.4e-6;
    const double floor = std::max(compute, memory);
    printf("(%d,%d,%d,%d) %9.1f us  min %9.1f  %6.0f TFLOPS  %5.1f %% of floor  %6.0f GB/s  plan "
           "%5.1f us\n",
           h, sq, b, ctx, t, us[0], tokens * h * sq * 2176 / t * 1e-6, 100 * floor / t,
           tokens * 644 / t * 1e-3, plan[reps / 2]);
    fflush(stdout);
    destroy(s);
}

} // namespace

int main(int argc, char **argv) {
    for (const variant &v : variants)
        if (argc > 1 && !strcmp(argv[1], v.name)) {
            tested = &v;
            argc--;
            argv++;
            break;
        }
    CHECK(tested->init());
    if (argc > 1 && !strcmp(argv[1], "check"))
        return check_all() ? 0 : 1;
    if (argc > 1 && !strcmp(argv[1], "few"))
        return check_few() ? 0 : 1;
    for (int i = 2; i < argc; i++)
        time_one(argv[i], !strcmp(argv[1], "once"));
    return 0;
}
