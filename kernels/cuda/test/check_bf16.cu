/* check_bf16 - tests the BF16 kernel against FP64 on the device, and measures its time.
 *
 *   check_bf16 check                  runs all cases; exit 1 if any figure is out of bounds
 *   check_bf16 time H,s_q,batch,context[,splits] ...
 *   check_bf16 once H,s_q,batch,context[,splits] ...    three launches each, for a profiler */
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cuda/sm90_bf16/bf16_launch.h"
#include "kernels/cuda/test/device_data.cuh"

namespace {

constexpr int kWidth = D_C + D_R;
constexpr double kOutBound = 2.5e-3, kLseBound = 1e-5;

struct problem {
    int heads, s_q, batch;
    std::vector<int> lengths;
    distribution kind;
    int splits;
};

struct setup {
    problem want;
    decode_args args;
    int *seqlens;
    std::vector<void *> owned;
    int64_t counters; /* number of counters */
};

__global__ void poison(__nv_bfloat16 *kv, const int *slots) {
    const int64_t slot = slots[blockIdx.x];
    for (int d = threadIdx.x; d < kWidth; d += blockDim.x)
        kv[slot * kWidth + d] = __float2bfloat16(NAN);
}

/* Shuffled pages. Table entries past the end of a sequence are invalid. */
struct paging {
    int width;
    int64_t pages;
    std::vector<int> table, unused; /* unused: slots of the pool that hold no token */
};

paging lay_out(const problem &w, uint64_t seed) {
    paging l = {};
    const int longest = std::max(1, *std::max_element(w.lengths.begin(), w.lengths.end()));
    int64_t need = 0;
    for (int n : w.lengths)
        need += (n + PAGE - 1) / PAGE;
    l.width = (longest + PAGE - 1) / PAGE + 1;
    l.pages = need + std::min<int64_t>(need / 8, 64) + 2;
    std::vector<int> order(l.pages);
    for (int64_t i = 0; i < l.pages; i++)
        order[i] = static_cast<int>(i);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
    l.table.assign(static_cast<size_t>(w.batch) * l.width, 0);
    int64_t at = 0;
    for (int b = 0; b < w.batch; b++) {
        const int pages = (w.lengths[b] + PAGE - 1) / PAGE;
        for (int i = 0; i < l.width; i++)
            l.table[static_cast<size_t>(b) * l.width + i] =
                i < pages ? order[at + i] : (i % 2 ? -7 : 1 << 30);
        for (int t = w.lengths[b]; t < pages * PAGE; t++)
            l.unused.push_back(order[at + t / PAGE] * PAGE + t % PAGE);
        at += pages;
    }
    for (; at < l.pages; at++)
        for (int t = 0; t < PAGE; t++)
            l.unused.push_back(order[at] * PAGE + t);
    return l;
}

setup make(const problem &w, uint64_t seed) {
    setup s = {};
    s.want = w;
    cudaDeviceProp prop;
    CHECK(cudaGetDeviceProperties(&prop, 0));
    const paging l = lay_out(w, seed);
    const int rows = w.heads * w.s_q;
    const int64_t tokens = l.pages * PAGE, all_rows = static_cast<int64_t>(rows) * w.batch;
    auto *kv = allocate<__nv_bfloat16>(tokens * kWidth),
         *q = allocate<__nv_bfloat16>(all_rows * kWidth);
    fill_bf16<<<4096, 256>>>(kv, tokens, w.kind, seed, false);
    fill_bf16<<<1024, 256>>>(q, all_rows, w.kind, seed + 99, true);
    int *bad = upload(l.unused);
    poison<<<static_cast<unsigned>(l.unused.size()), 128>>>(kv, bad);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(bad));
    decode_args &a = s.args;
    a.precision = MLA_BF16;
    a.heads = w.heads;
    a.d_c = D_C;
    a.d_r = D_R;
    a.cache = {l.pages, kv, nullptr, nullptr};
    s.seqlens = upload(w.lengths);
    a.step = {w.batch, w.s_q, s.seqlens, upload(l.table), l.width};
    a.attn = {q,
              nullptr,
              nullptr,
              static_cast<float>(1 / sqrt(192.0)),
              allocate<__nv_bfloat16>(all_rows * D_C),
              allocate<float>(all_rows)};
    a.may_cut = w.splits != 1;
    a.grid = {bf16_tile(w.heads, w.s_q),
              bf16_decode_parts(prop.multiProcessorCount, w.heads, w.s_q), 0};
    const int items = sched_max_items(w.batch, a.grid.parts, w.splits);
    const int64_t slots = w.splits ? static_cast<int64_t>(items) : 2 * a.grid.parts;
    s.counters = slots * bf16_row_tiles(w.heads, w.s_q);
    decode_workspace &work = a.work;
    work.metadata = {allocate<sched_item>(items), allocate<sched_part>(a.grid.parts),
                     allocate<sched_cut>(w.batch), allocate<int>(1)};
    work.partial_out = allocate<uint8_t>(slots * rows * BF16_PARTIAL_BYTES);
    work.counters = upload(std::vector<int>(s.counters));
    s.owned = {kv,
               q,
               s.seqlens,
               const_cast<int *>(a.step.block_table),
               a.attn.out,
               a.attn.lse,
               work.metadata.items,
               work.metadata.parts,
               work.metadata.cuts,
               work.metadata.cut_count,
               work.partial_out,
               work.counters};
    CHECK(sched_launch(work.metadata, s.seqlens, w.batch, l.width * PAGE, a.grid.tile, a.grid.parts,
                       w.splits, 0, a.step.block_table, l.width));
    CHECK(cudaDeviceSynchronize());
    return s;
}

void destroy(setup &s) {
    for (void *p : s.owned)
        CHECK(cudaFree(p));
}

struct result {
    double out, worst, lse;
    int bad;
    int64_t left; /* counters that a launch did not reset to zero for the next one */
    bool same;
};

/* Judges up to @sample random rows in FP64. */
std::vector<verdict> judge_some(const setup &s, int sample) {
    const problem &w = s.want;
    std::vector<int> chosen(static_cast<size_t>(w.heads) * w.s_q * w.batch);
    for (size_t i = 0; i < chosen.size(); i++)
        chosen[i] = static_cast<int>(i);
    std::shuffle(chosen.begin(), chosen.end(), std::mt19937_64(5));
    chosen.resize(std::min<size_t>(chosen.size(), sample));
    const int n = static_cast<int>(chosen.size());
    const decode_args &a = s.args;
    judged j = {};
    j.kv = static_cast<const __nv_bfloat16 *>(a.cache.content);
    j.q_bf16 = static_cast<const __nv_bfloat16 *>(a.attn.q);
    j.seqlens = s.seqlens;
    j.table = a.step.block_table;
    j.table_width = a.step.table_width;
    j.heads = a.heads;
    j.s_q = a.step.s_q;
    j.softmax_scale = static_cast<double>(a.attn.softmax_scale);
    j.out = static_cast<const __nv_bfloat16 *>(a.attn.out);
    j.lse = a.attn.lse;
    j.longest = *std::max_element(w.lengths.begin(), w.lengths.end()) + 1;
    j.scores = allocate<double>(j.longest * n);
    int *picked = upload(chosen);
    auto *verdicts = allocate<verdict>(n);
    judge<<<n, 256>>>(j, picked, verdicts);
    CHECK(cudaDeviceSynchronize());
    auto v = download(verdicts, n);
    CHECK(cudaFree(picked));
    CHECK(cudaFree(j.scores));
    CHECK(cudaFree(verdicts));
    return v;
}

result check(const setup &s, int sample) {
    const problem &w = s.want;
    const size_t rows = static_cast<size_t>(w.heads) * w.s_q * w.batch, n = rows * D_C;
    std::vector<__nv_bfloat16> out[2];
    std::vector<float> lse[2];
    result r = {};
    for (int i = 0; i < 2; i++) {
        CHECK(cudaMemset(s.args.attn.out, 0xff, n * 2));
        CHECK(cudaMemset(s.args.attn.lse, 0xff, rows * 4));
        CHECK(bf16_decode_launch(s.args, 0));
        CHECK(cudaDeviceSynchronize());
        out[i] = download(static_cast<const __nv_bfloat16 *>(s.args.attn.out), n);
        lse[i] = download(s.args.attn.lse, rows);
        const auto counters = download(s.args.work.counters, s.counters);
        r.left += s.counters - std::count(counters.begin(), counters.end(), 0);
    }
    double diff = 0, norm = 0;
    for (auto &x : judge_some(s, sample)) {
        diff += x.diff_exact;
        norm += x.norm;
        r.worst = std::max(r.worst, x.row_worst);
        r.lse = std::max(r.lse, x.lse);
        r.bad += static_cast<int>(x.bad);
    }
    r.out = norm > 0 ? sqrt(diff / norm) : sqrt(diff);
    r.same = !memcmp(out[0].data(), out[1].data(), n * 2) &&
             !memcmp(lse[0].data(), lse[1].data(), rows * 4);
    return r;
}

bool report(const char *name, const problem &w, uint64_t seed) {
    setup s = make(w, seed);
    result r = check(s, 192);
    const bool good =
        r.bad == 0 && r.left == 0 && r.same && r.out <= kOutBound && r.lse <= kLseBound;
    printf(
        "%-16s H%d s_q%d b%d max%d splits%d: out %.2e row %.2e lse %.1e bad %d left %lld same %d "
        "%s\n",
        name, w.heads, w.s_q, w.batch, *std::max_element(w.lengths.begin(), w.lengths.end()),
        w.splits, r.out, r.worst, r.lse, r.bad, static_cast<long long>(r.left), r.same,
        good ? "ok" : "WRONG");
    fflush(stdout);
    destroy(s);
    return good;
}

/* @n lengths in least .. least + more - 1. */
std::vector<int> uneven(int n, int least, int more) {
    std::vector<int> v(n);
    for (int i = 0; i < n; i++)
        v[i] = least + static_cast<int>(mix(i) % static_cast<uint64_t>(more));
    return v;
}

bool check_all() {
    const std::vector<int> ragged = {0, 1, 63, 64, 65, 127, 128, 129, 500, 4000, 0};
    const int n = static_cast<int>(ragged.size());
    std::vector<int> many(1000);
    for (int i = 0; i < 1000; i++)
        many[i] = static_cast<int>(mix(i) % 700);
    const struct {
        const char *name;
        problem w;
    } cases[] = {
        {"one token", {64, 1, 2, equal(2, 1), NORMAL, 0}},
        {"one page", {64, 1, 2, equal(2, 64), NORMAL, 1}},
        {"two pages", {128, 1, 2, equal(2, 128), NORMAL, 1}},
        {"three pages", {64, 1, 3, equal(3, 192), NORMAL, 1}},
        {"ragged", {64, 1, n, ragged, NORMAL, 1}},
        {"ragged, cut", {64, 1, n, ragged, NORMAL, 0}},
        {"ragged, 5 parts", {16, 1, n, ragged, NORMAL, 5}},
        {"ragged, 5 x 128", {128, 1, n, ragged, NORMAL, 5}},
        {"causal 2", {64, 2, 5, {1, 2, 65, 129, 3000}, NORMAL, 0}},
        {"causal 3", {5, 3, 6, {1, 2, 66, 130, 1000, 0}, NORMAL, 0}},
        {"causal 4 x 24", {24, 4, 5, {0, 3, 64, 66, 2000}, NORMAL, 0}},
        {"causal 4 x 128", {128, 4, 4, {2, 65, 129, 900}, NORMAL, 2}},
        {"few heads", {16, 1, 3, {100, 1000, 10000}, NORMAL, 0}},
        {"32 rows", {32, 1, 3, {100, 1000, 10000}, NORMAL, 0}},
        {"one head", {1, 1, 3, {100, 1000, 10000}, NORMAL, 0}},
        {"no cut 4k", {128, 1, 4, equal(4, 4096), NORMAL, 1}},
        {"cut 4k", {128, 1, 4, equal(4, 4096), NORMAL, 0}},
        {"64k", {128, 1, 2, equal(2, 65536), NORMAL, 0}},
        {"64k no cut", {64, 1, 2, equal(2, 65536), NORMAL, 1}},
        {"1M", {16, 1, 1, {1 << 20}, NORMAL, 0}},
        {"mla 4k", {128, 1, 4, equal(4, 4096), MLA, 0}},
        {"mla 64k", {64, 1, 2, equal(2, 65536), MLA, 1}},
        {"mla few", {16, 2, 3, {7, 999, 4096}, MLA, 0}},
        {"wide 4k", {64, 1, 4, equal(4, 4096), WIDE, 1}},
        {"wide few", {16, 1, 4, equal(4, 4096), WIDE, 0}},
        {"sink 8k", {64, 1, 4, equal(4, 8192), SINK, 1}},
        {"pairs", {64, 1, 64, equal(64, 4096), NORMAL, 0}},
        {"pairs x 128", {128, 1, 32, uneven(32, 1500, 700), NORMAL, 0}},
        {"pairs, few rows", {5, 2, 60, uneven(60, 2000, 1500), NORMAL, 0}},
        {"pairs and whole", {64, 1, 80, uneven(80, 300, 3000), NORMAL, 0}},
        {"pairs, causal", {48, 4, 20, uneven(20, 100, 900), MLA, 0}},
        {"items of a page", {64, 1, 120, equal(120, 300), NORMAL, 5}},
        {"items of a page, few", {8, 1, 120, equal(120, 300), NORMAL, 5}},
        {"many", {64, 1, 1000, many, NORMAL, 0}},
        {"many few", {8, 1, 1000, many, NORMAL, 0}},
    };
    bool good = true;
    uint64_t seed = 1;
    for (const auto &c : cases)
        good &= report(c.name, c.w, seed++);
    return good;
}

bool parse(const char *text, problem *w) {
    int context;
    if (sscanf(text, "%d,%d,%d,%d,%d", &w->heads, &w->s_q, &w->batch, &context, &w->splits) < 4)
        return false;
    w->lengths = equal(w->batch, context);
    return true;
}

bool time_one(const char *text, int reps) {
    problem w = {};
    if (!parse(text, &w))
        return false;
    setup s = make(w, 42);
    const auto us = time_cold(reps, [&] { CHECK(bf16_decode_launch(s.args, 0)); });
    const double tokens = static_cast<double>(w.batch) * w.lengths[0], t = us[reps / 2];
    const double flop = tokens * w.heads * w.s_q * 2 * (D_C + kWidth);
    printf("(%s) %9.1f us  min %9.1f  %6.0f TFLOPS  %6.0f GB/s\n", text, t, us[0], flop / t * 1e-6,
           tokens * kWidth * 2 / t * 1e-3);
    fflush(stdout);
    destroy(s);
    return true;
}

} // namespace

int main(int argc, char **argv) {
    CHECK(bf16_decode_init());
    if (argc == 2 && !strcmp(argv[1], "check"))
        return check_all() ? 0 : 1;
    const bool once = argc > 1 && !strcmp(argv[1], "once");
    bool good = argc > 2 && (once || !strcmp(argv[1], "time"));
    for (int i = 2; i < argc && good; i++)
        good = time_one(argv[i], once ? 1 : 25);
    if (!good)
        fprintf(stderr, "usage: check_bf16 check | time|once H,s_q,batch,context ...\n");
    return good ? 0 : 2;
}
