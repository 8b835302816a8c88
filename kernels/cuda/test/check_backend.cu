/* check_backend - tests the CUDA backend through mla.h. Quantised, appended and fetched rows are
 * compared with the CPU backend's bit for bit, attention with the FP64 judge. Steps that take turns
 * on one plan are compared with the same steps on plans of their own. Exits with 1 on the first
 * failure. */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/cuda/sm90_fp8/fp8_launch.h"
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

/* The results of a backend for given tokens and queries. */
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

std::vector<int32_t> table_of(int batch, int width = kTableWidth) {
    std::vector<int32_t> order(kPages), table(static_cast<size_t>(batch) * width, -1);
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

    /* Tokens are appended four at a time. A sequence that is complete repeats its last four. */
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

/* ---- steps that take turns on one plan ------------------------------------------------------ */

constexpr int kHeads = 64;
constexpr float kScale = 0.0721688f;

struct turn {
    int s_q, tile_rows; /* tile_rows: rows per CTA that the FP8 kernel chooses */
    std::vector<int32_t> lengths;

    int batch() const {
        return static_cast<int>(lengths.size());
    }
    int width() const {
        return (*std::max_element(lengths.begin(), lengths.end()) + MLA_PAGE - 1) / MLA_PAGE;
    }
    int rows() const {
        return batch() * s_q * kHeads;
    }
};

/* Quantised rows; queries and tokens have the same format. */
struct quantised {
    uint8_t *content;
    uint16_t *rope;
    float *scale;

    quantised(mla_backend *be, int rows, uint64_t seed) {
        snap_err err = {};
        memory m = {be};
        content = m.room<uint8_t>(static_cast<size_t>(rows) * D_C);
        rope = m.room<uint16_t>(static_cast<size_t>(rows) * D_R);
        scale = m.room<float>(rows);
        must(mla_quant_q(be, rows, D_C, D_R, m.in(random_rows(rows, seed)), content, rope, scale,
                         &err),
             err, "rows");
    }
};

struct answer {
    std::vector<uint16_t> out;
    std::vector<float> lse;
};

/* A step with its inputs on the device. */
struct staged_turn {
    const turn &t;
    mla_backend *be;
    mla_step step;
    mla_cache cache;
    quantised q;

    staged_turn(mla_backend *be, const turn &t, const quantised &tokens)
        : t(t), be(be), cache{kPages, tokens.content, tokens.rope, tokens.scale},
          q(be, t.rows(), t.width()) {
        memory m = {be};
        step = {t.batch(), t.s_q, m.in(t.lengths), m.in(table_of(t.batch(), t.width())), t.width()};
    }
    answer run(mla_plan *plan) const {
        snap_err err = {};
        memory m = {be};
        const size_t rows = t.rows();
        const mla_attn attn = {q.content,
                               q.rope,
                               q.scale,
                               kScale,
                               m.in(std::vector<uint16_t>(rows * D_C, 0x7fc0)),
                               m.in(std::vector<float>(rows, NAN))};
        must(mla_schedule(plan, &step, &err), err, "schedule");
        must(mla_run(plan, &step, &cache, &attn, &err), err, "run");
        return {m.out<uint16_t>(attn.out, rows * D_C), m.out<float>(attn.lse, rows)};
    }
    void judge(const answer &a) const {
        snap_err err = {};
        memory m = {be};
        auto lengths = t.lengths;
        auto table = table_of(t.batch(), t.width());
        auto content = m.out<uint8_t>(cache.content, kPages * MLA_PAGE * D_C);
        auto rope = m.out<uint16_t>(cache.rope, kPages * MLA_PAGE * D_R);
        auto scale = m.out<float>(cache.scale, kPages * MLA_PAGE);
        auto q8 = m.out<uint8_t>(q.content, static_cast<size_t>(t.rows()) * D_C);
        auto q_rope = m.out<uint16_t>(q.rope, static_cast<size_t>(t.rows()) * D_R);
        auto q_scale = m.out<float>(q.scale, t.rows());
        auto out = a.out;
        auto lse = a.lse;
        judge_step in = {};
        in.precision = MLA_FP8;
        in.heads = kHeads;
        in.d_c = D_C;
        in.d_r = D_R;
        in.step = {t.batch(), t.s_q, lengths.data(), table.data(), t.width()};
        in.cache = {kPages, content.data(), rope.data(), scale.data()};
        in.attn = {q8.data(), q_rope.data(), q_scale.data(), kScale, out.data(), lse.data()};
        judge_error e;
        must(judge_rows(&e, &in, REF_P_EXACT, {100, 1}, &err), err, "judge");
        printf("tiles of %d rows, %d pages wide: exact %.2e lse %.1e\n", t.tile_rows, t.width(),
               e.out_rel, e.lse_err);
        must(e.nonfinite == 0 && e.out_rel <= 3e-2 && e.lse_err <= 5e-4, "attention is wrong");
    }
};

mla_plan *plan_of_turns(mla_backend *be) {
    snap_err err = {};
    const mla_capacity cap = {MLA_FP8, kHeads, D_C, D_R, 4, 2, 8192, 0};
    mla_plan *plan = nullptr;
    must(mla_plan_create(&plan, be, &cap, &err), err, "plan");
    return plan;
}

/* The length in tokens, a multiple of a page, of the shortest single sequence for which the step
 * has tiles of @tile_rows rows; 8192 if there is none. */
int tokens_for(int sms, int s_q, int tile_rows) {
    int pages = 1;
    while (pages < 8192 / MLA_PAGE && fp8_grid(sms, kHeads, s_q, {1, pages}).tile_rows != tile_rows)
        pages++;
    return pages * MLA_PAGE;
}

/* Steps with tiles of 16, 32 and 64 rows share the memory of one plan. Each must give the same
 * result as on its own plan. */
void check_turns(mla_backend *be) {
    const int sms = cuda_of(be)->sms;
    const turn turns[] = {{1, 16, {500}},
                          {2, 64, {8192, 0, 5000, 7777}},
                          {2, 32, {tokens_for(sms, 2, 32) - 5}}};
    const quantised tokens(be, kPages * MLA_PAGE, 21);
    std::vector<staged_turn> staged;
    std::vector<answer> alone;
    for (const turn &t : turns) {
        must(!cuda_of(be)->hopper ||
                 fp8_grid(sms, kHeads, t.s_q, {t.batch(), t.width()}).tile_rows == t.tile_rows,
             "a step's tiles have another height than meant");
        staged.emplace_back(be, t, tokens);
        mla_plan *plan = plan_of_turns(be);
        alone.push_back(staged.back().run(plan));
        mla_plan_free(plan);
        staged.back().judge(alone.back());
    }
    mla_plan *plan = plan_of_turns(be);
    for (int i : {0, 1, 2, 0, 2, 1, 1, 0, 0, 2}) {
        const answer a = staged[i].run(plan);
        same(a.out, alone[i].out, "a step's output depends on the steps before it");
        same(a.lse, alone[i].lse, "a step's LSE depends on the steps before it");
    }
    mla_plan_free(plan);
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
    check_turns(cuda);
    mla_backend_close(cuda);
    mla_backend_close(cpu);
    printf("ok\n");
    return 0;
}
