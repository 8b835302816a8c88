/* check_backend - the CUDA backend through mla.h, against the CPU backend (quantisation, to the bit)
 * and the FP64 judge (attention). Exit 1 on the first failure. */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cuda/c_contract.h"
extern "C" {
#include "kernels/judge.h"
}

namespace {

enum { D_C = 512, D_R = 64, WIDTH = D_C + D_R };

void must(snap_status st, const snap_err &err, const char *what) {
    if (st == SNAP_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, err.text);
    exit(1);
}

void must(bool good, const char *what) {
    if (!good) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

uint16_t bf16(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

std::vector<uint16_t> random_rows(size_t rows, uint64_t seed) {
    std::mt19937_64 rng(seed);
    std::normal_distribution<float> normal;
    std::vector<uint16_t> x(rows * WIDTH);
    for (auto &v : x)
        v = bf16(normal(rng));
    return x;
}

/* Device memory of one backend. */
struct memory {
    mla_backend *be;

    template <typename T>
    T *room(size_t n) {
        snap_err err = {};
        void *p = mla_alloc(be, n * sizeof(T), &err);
        must(p != nullptr, err.text);
        return static_cast<T *>(p);
    }
    template <typename T>
    T *in(const std::vector<T> &v) {
        snap_err err = {};
        T *p = room<T>(v.size());
        must(mla_copy_in(be, p, v.data(), v.size() * sizeof(T), &err), err, "copy in");
        return p;
    }
    template <typename T>
    std::vector<T> out(const void *p, size_t n) {
        snap_err err = {};
        std::vector<T> v(n);
        must(mla_copy_out(be, v.data(), p, n * sizeof(T), &err), err, "copy out");
        return v;
    }
};

/* What a backend makes of the same tokens and queries. */
struct outcome {
    std::vector<uint8_t> content, q8;
    std::vector<uint16_t> rope, q_rope, fetched, out;
    std::vector<float> scale, q_scale, lse;
    mla_attn attn;
    mla_cache cache;
};

struct shape {
    int heads, s_q, splits;
    std::vector<int32_t> lengths;
};

constexpr int kPages = 64, kTableWidth = 24;

std::vector<int32_t> table_of(int batch) {
    std::vector<int32_t> order(kPages), table(static_cast<size_t>(batch) * kTableWidth, -1);
    for (int i = 0; i < kPages; i++)
        order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937_64(3));
    int next = 0;
    for (auto &t : table)
        t = order[next++ % kPages];
    return table;
}

outcome run(mla_backend *be, const shape &w, const std::vector<uint16_t> &tokens,
            const std::vector<uint16_t> &queries) {
    snap_err err = {};
    memory m = {be};
    outcome o = {};
    const int batch = static_cast<int>(w.lengths.size()), rows = batch * w.s_q * w.heads;
    const int longest = *std::max_element(w.lengths.begin(), w.lengths.end());
    const mla_capacity cap = {MLA_FP8, w.heads, D_C, D_R, batch, 4, longest, w.splits};
    mla_plan *plan = nullptr;
    must(mla_plan_create(&plan, be, &cap, &err), err, "plan");
    const size_t slots = kPages * MLA_PAGE;
    mla_cache &cache = o.cache;
    cache = {kPages, m.in(std::vector<uint8_t>(slots * D_C, 0x7f)),
             m.in(std::vector<uint16_t>(slots * D_R, 0x7fc0)),
             m.in(std::vector<float>(slots, NAN))};
    int32_t *lengths = m.in(w.lengths);
    mla_step step = {batch, 4, lengths, m.in(table_of(batch)), kTableWidth};

    /* Tokens go in four at a time; sequences that have theirs repeat the last four. */
    uint16_t *kv = m.room<uint16_t>(static_cast<size_t>(batch) * 4 * WIDTH);
    for (int t = 4; t < longest + 4; t += 4) {
        std::vector<int32_t> now = w.lengths;
        std::vector<uint16_t> rows4(static_cast<size_t>(batch) * 4 * WIDTH);
        for (int b = 0; b < batch; b++) {
            now[b] = std::min(now[b], t);
            for (int i = 0; i < 4; i++)
                if (now[b] - 4 + i >= 0)
                    memcpy(&rows4[(static_cast<size_t>(b) * 4 + i) * WIDTH],
                           &tokens[(static_cast<size_t>(b) * longest + now[b] - 4 + i) * WIDTH],
                           WIDTH * 2);
        }
        must(mla_copy_in(be, kv, rows4.data(), rows4.size() * 2, &err), err, "tokens");
        must(mla_copy_in(be, lengths, now.data(), now.size() * 4, &err), err, "lengths");
        must(mla_append_kv(plan, &step, &cache, kv, &err), err, "append");
    }

    step.s_q = w.s_q;
    uint16_t *q = m.in(queries), *q_rope = m.room<uint16_t>(static_cast<size_t>(rows) * D_R);
    uint8_t *q8 = m.room<uint8_t>(static_cast<size_t>(rows) * D_C);
    float *q_scale = m.room<float>(rows);
    must(mla_quant_q(be, rows, D_C, D_R, q, q8, q_rope, q_scale, &err), err, "queries");
    mla_attn attn = {q8,
                     q_rope,
                     q_scale,
                     0.0721688f,
                     m.room<uint16_t>(static_cast<size_t>(rows) * D_C),
                     m.room<float>(rows)};
    must(mla_check_step(plan, &step, &cache, &err), err, "check");
    must(mla_schedule(plan, &step, &err), err, "schedule");
    must(mla_run(plan, &step, &cache, &attn, &err), err, "run");
    uint16_t *fetched = m.room<uint16_t>(static_cast<size_t>(longest + 3) * WIDTH);
    must(mla_fetch_kv(plan, &step, &cache, batch - 1, 1, longest, fetched, &err), err, "fetch");

    o.content = m.out<uint8_t>(cache.content, slots * D_C);
    o.rope = m.out<uint16_t>(cache.rope, slots * D_R);
    o.scale = m.out<float>(cache.scale, slots);
    o.q8 = m.out<uint8_t>(q8, static_cast<size_t>(rows) * D_C);
    o.q_rope = m.out<uint16_t>(q_rope, static_cast<size_t>(rows) * D_R);
    o.q_scale = m.out<float>(q_scale, rows);
    o.fetched = m.out<uint16_t>(fetched, static_cast<size_t>(longest) * WIDTH);
    o.out = m.out<uint16_t>(attn.out, static_cast<size_t>(rows) * D_C);
    o.lse = m.out<float>(attn.lse, rows);
    o.attn = attn;
    mla_plan_free(plan);
    return o;
}

template <typename T>
void same(const std::vector<T> &a, const std::vector<T> &b, const char *what) {
    must(a.size() == b.size() && memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0, what);
}

void compare(mla_backend *cuda, mla_backend *cpu, const shape &w) {
    snap_err err = {};
    const int batch = static_cast<int>(w.lengths.size());
    const int longest = *std::max_element(w.lengths.begin(), w.lengths.end());
    const auto tokens = random_rows(static_cast<size_t>(batch) * longest, 11);
    const auto queries = random_rows(static_cast<size_t>(batch) * w.s_q * w.heads, 12);
    outcome a = run(cuda, w, tokens, queries), b = run(cpu, w, tokens, queries);
    same(a.content, b.content, "content plane differs from the CPU's");
    same(a.rope, b.rope, "rope plane differs from the CPU's");
    same(a.scale, b.scale, "scale plane differs from the CPU's");
    same(a.q8, b.q8, "q8 differs from the CPU's");
    same(a.q_rope, b.q_rope, "q_rope differs from the CPU's");
    same(a.q_scale, b.q_scale, "q_scale differs from the CPU's");
    same(a.fetched, b.fetched, "fetched tokens differ from the CPU's");

    auto lengths = w.lengths;
    auto table = table_of(batch);
    judge_step in = {};
    in.precision = MLA_FP8;
    in.heads = w.heads;
    in.d_c = D_C;
    in.d_r = D_R;
    in.step = {batch, w.s_q, lengths.data(), table.data(), kTableWidth};
    in.cache = {kPages, a.content.data(), a.rope.data(), a.scale.data()};
    in.attn = {a.q8.data(),          a.q_rope.data(), a.q_scale.data(),
               a.attn.softmax_scale, a.out.data(),    a.lse.data()};
    judge_error e;
    must(judge_rows(&e, &in, REF_P_EXACT, {200, 1}, &err), err, "judge");
    printf("H%d s_q%d splits%d: exact %.2e row %.2e lse %.1e nonfinite %lld\n", w.heads, w.s_q,
           w.splits, e.out_rel, e.row_rel, e.lse_err, static_cast<long long>(e.nonfinite));
    must(e.nonfinite == 0 && e.out_rel <= 3e-2, "attention is wrong");
}

} // namespace

int main() {
    snap_err err = {};
    const mla_backend_options options = {};
    mla_backend *cuda = nullptr, *cpu = nullptr;
    must(cuda_backend_open(&cuda, &options, &err), err, "cuda");
    must(cpu_backend_open(&cpu, &options, &err), err, "cpu");
    mla_backend_info info;
    mla_backend_describe(cuda, &info);
    printf("%s: %s, %s\n", info.name, info.device, info.kernel);
    compare(cuda, cpu, {16, 1, 0, {0, 1, 64, 200, 1000}});
    compare(cuda, cpu, {64, 2, 0, {1, 3, 129, 700}});
    compare(cuda, cpu, {128, 1, 1, {65, 1, 500}});
    compare(cuda, cpu, {40, 4, 3, {2, 400, 900}});
    mla_backend_close(cuda);
    mla_backend_close(cpu);
    printf("ok\n");
    return 0;
}
