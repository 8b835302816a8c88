/* check_step - tests the operations around attention: the schedule against its definition, a step
 * prepared in one launch against separate launches bit for bit, products and quotients against
 * their definitions, quantised rows against formats.h. Also measures times.
 *
 *   check_step check [STEPS]
 *       checks; STEPS: number of random steps (200)
 *   check_step time H,s_q,batch,context ...
 *       times both arms as the bench command does: a step recorded as a CUDA graph is replayed
 *       after a flush of L2; in us. Then times a fetch of tokens
 *   check_step mixed
 *       times both arms for shapes outside the public grid and for sequences of different lengths
 *   check_step once H,s_q,batch,context ...
 *       runs one step of the FP8 arm at each shape, for a profiler */
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "kernels/cuda/dataflow/prepare.h"
#include "kernels/cuda/dataflow/rows.cuh"
#include "kernels/cuda/test/mixed_times.cuh"

namespace {

void must(cudaError_t e) {
    must(e == cudaSuccess, cudaGetErrorString(e));
}

std::vector<void *> owned;

template <typename T>
T *device(size_t n, int byte = 0xab) {
    void *p = nullptr;
    must(cudaMalloc(&p, std::max<size_t>(n, 1) * sizeof(T)));
    must(cudaMemset(p, byte, std::max<size_t>(n, 1) * sizeof(T)));
    owned.push_back(p);
    return static_cast<T *>(p);
}

template <typename T>
T *upload(const std::vector<T> &v) {
    T *p = device<T>(v.size());
    must(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

template <typename T>
std::vector<T> download(const T *p, size_t n) {
    std::vector<T> v(n);
    must(cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
}

void release_all() {
    for (void *p : owned)
        must(cudaFree(p));
    owned.clear();
}

/* ---- the schedule --------------------------------------------------------------------------- */

struct plan_case {
    std::vector<int> lengths;
    sched_tile tile;
    int parts, splits;
};

struct plan_copy {
    sched_plan at;
    int items, batch, parts;

    plan_copy(const plan_case &c)
        : items(sched_max_items(static_cast<int>(c.lengths.size()), c.parts, c.splits)),
          batch(static_cast<int>(c.lengths.size())), parts(c.parts) {
        at = {device<sched_item>(items), device<sched_part>(parts), device<sched_cut>(batch),
              device<int>(1)};
    }
    /* Compares bit for bit. */
    bool operator==(const plan_copy &o) const {
        auto same = [](const auto *a, const auto *b, size_t n) {
            const auto x = download(a, n), y = download(b, n);
            return memcmp(x.data(), y.data(), n * sizeof *a) == 0;
        };
        return same(at.items, o.at.items, items) && same(at.parts, o.at.parts, parts) &&
               same(at.cuts, o.at.cuts, batch) && same(at.cut_count, o.at.cut_count, 1);
    }
};

/* Checks a part's record: its copy of the first item, and the pages that it contains. */
void check_part(const plan_case &c, const sched_part &p, const std::vector<sched_item> &items,
                const std::vector<int> &table, int width) {
    if (p.first == p.last)
        return;
    const sched_item &head = items[p.first];
    must(memcmp(&p.head, &head, sizeof head) == 0, "a part's first item");
    for (int i = 0; i < 2; i++) {
        const int page = head.tile_begin * (c.tile.tokens / MLA_PAGE) + i;
        const int want = page * MLA_PAGE < head.tokens ? table[head.seq * width + page] : -1;
        must(p.page[i] == std::max(want, -1), "a part's pages");
    }
}

/* Checks the parts without items that merge split sequences. Each such sequence must have as many
 * shares as its items say, or none. */
void check_mergers(const std::vector<sched_part> &parts, const std::vector<sched_item> &items) {
    std::map<int, std::vector<int>> shares; /* by sequence */
    for (const sched_part &p : parts)
        if (p.first == p.last && p.head.mergers > 0)
            shares[p.head.seq].push_back(p.head.slot - p.head.first_slot);
    for (const sched_item &item : items) {
        const std::vector<int> nth = item.mergers > 0 ? shares[item.seq] : std::vector<int>();
        must(item.mergers == 0 || item.slot >= 0, "an item that is merged");
        must(static_cast<int>(nth.size()) == item.mergers, "as many mergers as an item says");
        for (int i = 0; i < item.mergers; i++)
            must(nth[i] == i, "shares of mergers");
    }
    for (const sched_part &p : parts)
        if (p.first == p.last && p.head.mergers > 0) {
            const auto same = [&](const sched_item &item) {
                return item.seq == p.head.seq && item.first_slot == p.head.first_slot &&
                       item.items == p.head.items && item.mergers == p.head.mergers;
            };
            must(std::any_of(items.begin(), items.end(), same), "what a part merges");
        }
}

/* Checks that the items cover every tile of every sequence once and in order, that parts take the
 * items in order, and that the slots of a split sequence are consecutive and belong to no other. */
void check_plan(const plan_case &c, const plan_copy &plan, const std::vector<int> &table,
                int width) {
    const int batch = static_cast<int>(c.lengths.size());
    const auto parts = download(plan.at.parts, c.parts);
    const int n = parts.back().last;
    must(n <= plan.items && parts[0].first == 0, "as many items as there is room for");
    const auto items = download(plan.at.items, n);
    const auto cuts = download(plan.at.cuts, batch);
    const int cut_count = download(plan.at.cut_count, 1)[0];
    for (int p = 0; p < c.parts; p++) {
        must(parts[p].first <= parts[p].last &&
                 (p == 0 || parts[p].first == parts[p - 1].last || parts[p].first == parts[p].last),
             "parts follow each other");
        check_part(c, parts[p], items, table, width);
    }
    int at = 0, slot = 0, cut = 0;
    for (int b = 0; b < batch; b++) {
        const int tiles = (c.lengths[b] + c.tile.tokens - 1) / c.tile.tokens, first = at;
        int tile = 0;
        while (at < n && items[at].seq == b) {
            must(items[at].tile_begin == tile && items[at].tokens == c.lengths[b], "an item");
            tile = items[at++].tile_end;
        }
        must(at > first && tile == tiles, "a sequence's tiles");
        const int count = at - first;
        for (int i = first; i < at; i++)
            must(items[i].items == count && items[i].slot == (count > 1 ? slot + i - first : -1) &&
                     (count == 1 || items[i].first_slot == slot),
                 "slots");
        if (count > 1) {
            must(cuts[cut].seq == b && cuts[cut].slot == slot && cuts[cut].items == count, "cuts");
            cut++;
            slot += count;
        }
    }
    must(at == n && cut == cut_count, "all items");
    check_mergers(parts, items);
}

std::vector<int> random_lengths(std::mt19937 &rng, int batch) {
    std::vector<int> l(batch);
    const int kind = static_cast<int>(rng() % 4), base = 1 + static_cast<int>(rng() % 40000);
    for (auto &x : l)
        x = kind == 0   ? base
            : kind == 1 ? static_cast<int>(rng() % 3000)
            : kind == 2 ? (rng() % 7 ? static_cast<int>(rng() % 200) : base)
                        : static_cast<int>(std::exp((rng() % 1200) * 0.01));
    return l;
}

/* ---- one launch against three --------------------------------------------------------------- */

struct planes {
    uint8_t *content;
    __nv_bfloat16 *rope;
    float *scale;

    planes(size_t slots, bool fp8)
        : content(device<uint8_t>(slots * (fp8 ? D_C : 2 * WIDTH))),
          rope(fp8 ? device<__nv_bfloat16>(slots * D_R) : nullptr),
          scale(fp8 ? device<float>(slots) : nullptr) {
    }
    bool same(const planes &o, size_t slots, bool fp8) const {
        auto equal = [](const auto *a, const auto *b, size_t n) {
            const auto x = download(a, n), y = download(b, n);
            return memcmp(x.data(), y.data(), n * sizeof *a) == 0;
        };
        return equal(content, o.content, slots * (fp8 ? D_C : 2 * WIDTH)) &&
               (!fp8 || (equal(rope, o.rope, slots * D_R) && equal(scale, o.scale, slots)));
    }
};

void check_prepare(std::mt19937 &rng, bool fp8) {
    const int sizes[] = {1, 2, 3, 31, 32, 33, 64, 100, 128, 132, 133, 200, 256, 257, 700, 1024};
    const int batch = sizes[rng() % 16], s_q = 1 + static_cast<int>(rng() % 4);
    const int heads = 1 + static_cast<int>(rng() % 20);
    const bool pow2 = rng() % 2;
    const sched_tile tiles[] = {{64}, {64, 2}, {64, 2, 10}, {128}, {128, 2}};
    plan_case c = {random_lengths(rng, batch), tiles[rng() % 5],
                   std::vector<int>{132, 66, 44, 33, 1}[rng() % 5],
                   rng() % 3 ? 0 : 1 + static_cast<int>(rng() % 6)};
    const int longest = *std::max_element(c.lengths.begin(), c.lengths.end());
    const int width = longest / MLA_PAGE + 2, pages = 300, shift = static_cast<int>(rng() % 2);
    const int64_t tokens = int64_t(batch) * s_q, rows = tokens * heads;
    std::vector<int> table(size_t(batch) * width);
    for (auto &t : table)
        t = static_cast<int>(rng() % (pages + 4)) - 2;
    std::vector<uint16_t> fresh(tokens * WIDTH + 1), queries(rows * WIDTH);
    for (auto &x : fresh)
        x = static_cast<uint16_t>(rng() & 0xbfff);
    for (auto &x : queries)
        x = static_cast<uint16_t>(rng() & 0xbfff);
    /* Gives every sequence its own last pages. If two sequences wrote to the same slot, the result
     * would depend on the order. */
    std::vector<int> order(pages);
    for (int i = 0; i < pages; i++)
        order[i] = i;
    std::shuffle(order.begin(), order.end(), rng);
    int next = 0;
    for (int b = 0; b < batch; b++)
        for (int i = 0; i < 2; i++) {
            const int at = (c.lengths[b] - 1) / MLA_PAGE - i;
            if (at >= 0 && next < pages)
                table[size_t(b) * width + at] = order[next++];
            else if (at >= 0)
                c.lengths[b] = 0;
        }
    const int *lengths = upload(c.lengths), *entries = upload(table);
    const auto *kv = reinterpret_cast<__nv_bfloat16 *>(upload(fresh)) + shift;
    const auto *q = reinterpret_cast<__nv_bfloat16 *>(upload(queries));
    const planes cache[2] = {planes(pages * MLA_PAGE, fp8), planes(pages * MLA_PAGE, fp8)};
    const planes q8[2] = {planes(rows, true), planes(rows, true)};
    plan_copy plan[2] = {plan_copy(c), plan_copy(c)};
    const step_pages step = {lengths, entries, batch, s_q, width, width * MLA_PAGE};
    const cache_planes into[2] = {
        {cache[0].content, cache[0].rope, cache[0].scale, pages, D_C, D_R, pow2},
        {cache[1].content, cache[1].rope, cache[1].scale, pages, D_C, D_R, pow2}};
    if (fp8)
        must(quant_q_launch(rows, D_C, D_R, pow2, q, q8[0].content, q8[0].rope, q8[0].scale,
                            nullptr));
    must(append_launch(into[0], step, kv, nullptr));
    must(sched_launch(plan[0].at, lengths, batch, step.max_tokens, c.tile, c.parts, c.splits,
                      nullptr, entries, width));
    must(prepare_launch({plan[1].at, c.tile, c.parts, c.splits, into[1], step, kv, fp8 ? rows : 0,
                         q, q8[1].content, q8[1].rope, q8[1].scale},
                        nullptr));
    must(cudaDeviceSynchronize());
    check_plan(c, plan[0], table, width);
    must(plan[0] == plan[1], "the plan of one launch");
    must(cache[0].same(cache[1], pages * MLA_PAGE, fp8), "tokens appended in one launch");
    must(!fp8 || q8[0].same(q8[1], rows, true), "queries quantised in one launch");
    release_all();
}

/* ---- correctly rounded products ------------------------------------------------------------- */

__global__ void multiply_all(const float *scales, int n, uint16_t *bits) {
    for (int i = blockIdx.x; i < n; i += gridDim.x) {
        const float e = e4m3_pair(threadIdx.x).x, x = pair_of(threadIdx.x * 257u).x;
        bits[2 * (i * 256 + threadIdx.x)] = static_cast<uint16_t>(times({e, 0}, scales[i]));
        bits[2 * (i * 256 + threadIdx.x) + 1] = static_cast<uint16_t>(times({x, 0}, scales[i]));
    }
}

/* Multiplies all e4m3 numbers, and 256 bf16 numbers, by scales of every exponent, some of which
 * give ties or nearly so. */
void check_products() {
    std::mt19937 rng(8);
    const int n = 1 << 15;
    std::vector<float> scales(n);
    for (int i = 0; i < n; i++) {
        uint32_t bits = rng() & 0x7fffffff;
        if (i % 4 == 1)
            bits = (bits & 0x7f800000) | (rng() & 0x7f) << 16 | 0x8000; /* ties of bf16 */
        if (i % 4 == 2)
            bits = (bits & 0x7f800000) | (rng() & 0x7f) << 16 | 0x8001; /* next to ties */
        if (i % 4 == 3)
            bits = (bits & 0x00ffffff) | (rng() % 8) << 23; /* subnormal products */
        memcpy(&scales[i], &bits, 4);
    }
    uint16_t *got = device<uint16_t>(size_t(n) * 512);
    multiply_all<<<1024, 256>>>(upload(scales), n, got);
    must(cudaDeviceSynchronize());
    const auto bits = download(got, size_t(n) * 512);
    for (int i = 0; i < n; i++)
        for (int e = 0; e < 256; e++)
            for (int k = 0; k < 2; k++) {
                const float x = k ? bf16_to_f32(static_cast<uint16_t>(e * 257))
                                  : e4m3_to_f32(static_cast<uint8_t>(e));
                const uint16_t want = bf16_from_f64(double(x) * double(scales[i]));
                const uint16_t have = bits[2 * (size_t(i) * 256 + e) + k];
                const bool nan = std::isnan(bf16_to_f32(want)) && std::isnan(bf16_to_f32(have));
                if (have != want && !nan) {
                    fprintf(stderr, "%g x %a: %04x, not %04x\n", x, scales[i], have, want);
                    exit(1);
                }
            }
    release_all();
    printf("products: %d scales x 512 numbers agree with the exact product, rounded once\n", n);
}

/* ---- correctly rounded quotients ------------------------------------------------------------ */

/* True if the e4m3 quotient x / a is wrong, for numbers that a row with this scale can contain.
 * Other numbers are not compared. */
__device__ bool content_differs(float x, float a) {
    if (!isinf(a) && (a > 0x1p120f || fabsf(x) > 448 * a || isinf(x)))
        return false;
    const float by = isinf(a) ? 1.0f : a, q = content_quotient(x, by, 1.0f / a);
    return e4m3_of({q, 0}) != e4m3_of({__fdiv_rn(x, a), 0});
}

__global__ void divide_all(const float *scales, int n, int *bad) {
    for (int i = blockIdx.x; i < n; i += gridDim.x) {
        const float a = scales[i], r = reciprocal_of(a, 1.0f / a);
        for (uint32_t x = threadIdx.x; x < 1 << 15; x += blockDim.x) {
            const uint32_t pair = x | (x * 40503u & 0xffff) << 16;
            for (uint32_t sign : {0u, 0x8000u}) {
                const float2 v = pair_of(pair | sign), q = quotient(pair | sign, a, r);
                const float2 want = {__fdiv_rn(v.x, a), __fdiv_rn(v.y, a)};
                const bool same =
                    (__float_as_uint(q.x) == __float_as_uint(want.x) || isnan(want.x)) &&
                    (__float_as_uint(q.y) == __float_as_uint(want.y) || isnan(want.y));
                if (content_differs(v.x, a))
                    atomicAdd(bad, 1);
                if (!same || isnan(q.x) != isnan(want.x) || isnan(q.y) != isnan(want.y))
                    atomicAdd(bad, 1);
            }
        }
    }
}

/* Divides all bf16 numbers by scales of every exponent that a row can have; half of them are a bf16
 * number / 448. */
void check_quotients() {
    std::mt19937 rng(9);
    const int n = 1 << 14;
    std::vector<float> scales(n);
    for (int i = 0; i < n; i++) {
        uint32_t bits = (rng() & 0x7fffff) | (85 + rng() % 170) << 23; /* exponents from 2^-42 on */
        if (i % 2)
            bits &= 0xffff0000;
        memcpy(&scales[i], &bits, 4);
        scales[i] = i % 2 ? std::max(scales[i] / 448.0f, 1e-10f / 448.0f) : scales[i];
    }
    scales[0] = INFINITY;
    int *bad = upload(std::vector<int>{0});
    divide_all<<<1024, 256>>>(upload(scales), n, bad);
    must(cudaDeviceSynchronize());
    must(download(bad, 1)[0] == 0, "quotients as a division rounds them");
    release_all();
    printf("quotients: %d scales under all bf16 numbers\n", n);
}

/* ---- rows of various widths and contents ---------------------------------------------------- */

bool alike(float x, float y) {
    return memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y));
}

/* Compares quantised rows with formats.h. Rows are random bits; in every other row, finite numbers
 * including zeros of both signs. */
void check_rows(std::mt19937 &rng, int d_c, int d_r, mla_scale rule) {
    const int rows = 150, width = d_c + d_r;
    std::vector<uint16_t> q(size_t(rows) * width);
    for (size_t i = 0; i < q.size(); i++) {
        const uint32_t bits = rng();
        q[i] =
            static_cast<uint16_t>(i / width % 2 ? bits & (bits >> 16 & 7 ? 0xbfff : 0x8000) : bits);
    }
    const planes to(size_t(rows) * width, true);
    must(quant_q_launch(rows, d_c, d_r, rule == MLA_SCALE_POW2,
                        reinterpret_cast<__nv_bfloat16 *>(upload(q)), to.content, to.rope, to.scale,
                        nullptr));
    must(cudaDeviceSynchronize());
    const auto content = download(to.content, size_t(rows) * d_c);
    const auto rope = download(reinterpret_cast<uint16_t *>(to.rope), size_t(rows) * d_r);
    const auto scale = download(to.scale, rows);
    std::vector<uint8_t> c8(d_c);
    std::vector<uint16_t> r(d_r);
    for (int i = 0; i < rows; i++) {
        const float a = quant_row(&q[size_t(i) * width], d_c, d_r, rule, c8.data(), r.data());
        must(alike(scale[i], a), "a row's scale");
        for (int d = 0; d < d_c; d++)
            must(alike(e4m3_to_f32(content[size_t(i) * d_c + d]), e4m3_to_f32(c8[d])),
                 "a row's content");
        for (int d = 0; d < d_r; d++)
            must(alike(bf16_to_f32(rope[size_t(i) * d_r + d]), bf16_to_f32(r[d])), "a row's RoPE");
    }
    release_all();
}

void check_widths() {
    std::mt19937 rng(10);
    const int widths[][2] = {{512, 64}, {32, 32}, {480, 96}, {544, 32}, {1024, 256}};
    for (const auto &w : widths)
        for (const mla_scale rule : {MLA_SCALE_MAX, MLA_SCALE_POW2})
            check_rows(rng, w[0], w[1], rule);
    printf("rows of five widths as formats.h has them, with both rules for scales\n");
}

/* The cost of a merge, for schedules "pieces" and "line" (sched.h), decides whether sequences are
 * split. Costs are in tiles: an item costs its tiles plus 2, and {64, 2, 10} means tiles of 64
 * tokens, 2 for a merge of pieces, 10 for a merge of the line. */
void check_choice() {
    const struct {
        plan_case step;
        bool cut;
    } cases[] = {
        {{{256}, {64, 2, 10}, 132, 0}, true}, /* whole: 4 + 2 = 6. Pieces of one tile: 1 + 2, and 2
                                                 for the merge: 5 */
        {{{256}, {64, 4, 1}, 132, 0}, false},
        /* whole: 128 + 2 = 130. Line: 120 * 130 / 132 = 119 per part, and 4 for two items that the
         * borders cut, and 10 for the merge: 133. (With 6 for the merge, the case after: 129.) */
        {{std::vector<int>(120, 8192), {64, 2, 10}, 132, 0}, false},
        {{std::vector<int>(120, 8192), {64, 10, 6}, 132, 0}, true},
    };
    for (const auto &c : cases) {
        const int batch = static_cast<int>(c.step.lengths.size());
        const plan_copy plan(c.step);
        must(sched_launch(plan.at, upload(c.step.lengths), batch, 8192, c.step.tile, c.step.parts,
                          c.step.splits, nullptr));
        must(cudaDeviceSynchronize());
        must((download(plan.at.cut_count, 1)[0] > 0) == c.cut, "sequences cut where that pays");
        release_all();
    }
    printf("plans: the cheapest of three\n");
}

void check_all(int times) {
    check_choice();
    std::mt19937 rng(1);
    for (int i = 0; i < times; i++)
        check_prepare(rng, i % 2);
    printf("plans and prepared steps: %d alike\n", times);
    check_products();
    check_quotients();
    check_widths();
}

} // namespace

int main(int argc, char **argv) {
    snap_err err = {};
    mla_backend *be = nullptr;
    if (argc > 1 && !strcmp(argv[1], "check")) {
        check_all(argc > 2 ? atoi(argv[2]) : 200);
        printf("ok\n");
        return 0;
    }
    const bool mixed = argc > 1 && !strcmp(argv[1], "mixed");
    must(mixed || argc > 2,
         "usage: check_step check [STEPS] | mixed | time|once H,s_q,batch,context ...");
    must(mla_backend_open(&be, "cuda", nullptr, &err), err);
    for (int i = 0; mixed && i < static_cast<int>(std::size(mixed_shapes)); i++)
        time_mixed(be, mixed_shapes[i]);
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[1], "once")) {
            int h, s_q, b, n;
            must(sscanf(argv[i], "%d,%d,%d,%d", &h, &s_q, &b, &n) == 4, argv[i]);
            const arm a = make_arm(be, MLA_FP8, h, s_q, std::vector<int32_t>(b, n));
            must(lab_flush(be, &err), err);
            must(prepare(a, &err), err);
            must(attend(a, &err), err);
            must(mla_sync(be, &err), err);
            continue;
        }
        time_shape(be, argv[i], MLA_FP8);
        time_shape(be, argv[i], MLA_BF16);
    }
    if (!strcmp(argv[1], "time")) {
        time_fetch(be, MLA_FP8);
        time_fetch(be, MLA_BF16);
    }
    mla_backend_close(be);
    return 0;
}
