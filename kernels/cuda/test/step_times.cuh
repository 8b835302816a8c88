/* step_times.cuh - measures attention and the operations around it through mla.h, as the bench
 * command does: recorded, each after a flush, several in turns. */
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cuda/c_contract.h"
extern "C" {
#include "kernels/formats.h"
}

namespace {

enum { D_C = 512, D_R = 64, WIDTH = D_C + D_R };
constexpr float kSoftmaxScale = 0.0721688f;

void must(bool good, const char *what) {
    if (good)
        return;
    fprintf(stderr, "WRONG: %s\n", what);
    exit(1);
}

void must(snap_status st, const snap_err &err) {
    must(st == SNAP_OK, err.text);
}

int pages_of(int tokens) {
    return (tokens + MLA_PAGE - 1) / MLA_PAGE;
}

struct arm {
    mla_backend *be;
    mla_plan *plan;
    mla_step step;
    mla_cache cache;
    mla_attn attn;
    mla_fresh fresh;
    int64_t rows;
};

void *room(mla_backend *be, size_t bytes, const std::function<uint16_t()> &draw) {
    snap_err err = {};
    void *p = mla_alloc(be, bytes, &err);
    must(p != nullptr, err.text);
    std::vector<uint16_t> block(std::min<size_t>(bytes, 1 << 20) / 2 + 1);
    for (auto &x : block)
        x = draw();
    for (size_t at = 0; at < bytes; at += 1 << 20)
        must(mla_copy_in(be, static_cast<uint8_t *>(p) + at, block.data(),
                         std::min<size_t>(bytes - at, 1 << 20), &err),
             err);
    return p;
}

/* A block table whose pages are spread over the whole cache. */
std::vector<int32_t> shuffled_table(const std::vector<int32_t> &lengths, int width, int64_t pages,
                                    std::mt19937 &rng) {
    std::vector<int32_t> order(pages), table(lengths.size() * width);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), rng);
    size_t at = 0;
    for (size_t b = 0; b < lengths.size(); b++)
        for (int i = 0; i < pages_of(lengths[b]); i++)
            table[b * width + i] = order[at++];
    return table;
}

arm make_arm(mla_backend *be, mla_precision p, int heads, int s_q,
             const std::vector<int32_t> &lengths) {
    std::mt19937 rng(3);
    std::normal_distribution<float> normal;
    const auto bf16 = [&] { return bf16_from_f32(normal(rng)); };
    const auto fp8 = [&] {
        return static_cast<uint16_t>(e4m3_from_f32(100 * normal(rng)) |
                                     e4m3_from_f32(100 * normal(rng)) << 8);
    };
    const int batch = static_cast<int>(lengths.size()),
              context = *std::max_element(lengths.begin(), lengths.end()),
              width = pages_of(context);
    const mla_capacity cap = {p, heads, D_C, D_R, batch, s_q, context, 0};
    const mla_page_bytes page = mla_cache_page_bytes(p, D_C, D_R);
    const int64_t rows = int64_t(batch) * s_q * heads;
    int64_t pages = 0;
    for (int n : lengths)
        pages += pages_of(n);
    snap_err err = {};
    arm a = {};
    a.be = be;
    a.rows = rows;
    must(mla_plan_create(&a.plan, be, &cap, &err), err);
    const bool q8 = p == MLA_FP8;
    a.cache = {pages, room(be, page.content * pages, q8 ? std::function<uint16_t()>(fp8) : bf16),
               q8 ? room(be, page.rope * pages, bf16) : nullptr, nullptr};
    std::vector<float> scale(q8 ? pages * MLA_PAGE : 0, 0.008f);
    if (q8) {
        a.cache.scale = static_cast<float *>(mla_alloc(be, scale.size() * 4, &err));
        must(mla_copy_in(be, a.cache.scale, scale.data(), scale.size() * 4, &err), err);
    }
    const auto table = shuffled_table(lengths, width, pages, rng);
    auto *l = static_cast<int32_t *>(mla_alloc(be, batch * 4, &err));
    auto *t = static_cast<int32_t *>(mla_alloc(be, table.size() * 4, &err));
    must(mla_copy_in(be, l, lengths.data(), batch * 4, &err), err);
    must(mla_copy_in(be, t, table.data(), table.size() * 4, &err), err);
    a.step = {batch, s_q, l, t, width};
    void *q = room(be, rows * WIDTH * 2, bf16), *out = mla_alloc(be, rows * D_C * 2, &err);
    a.fresh.kv = room(be, int64_t(batch) * s_q * WIDTH * 2, bf16);
    a.attn = {q, nullptr, nullptr, kSoftmaxScale, out, nullptr};
    if (q8) {
        a.fresh.q = q;
        a.fresh.q8 = mla_alloc(be, rows * D_C, &err);
        a.fresh.q_rope = mla_alloc(be, rows * D_R * 2, &err);
        a.fresh.q_scale = static_cast<float *>(mla_alloc(be, rows * 4, &err));
        a.attn.q = a.fresh.q8;
        a.attn.q_rope = a.fresh.q_rope;
        a.attn.q_scale = a.fresh.q_scale;
    }
    must(mla_prepare(a.plan, &a.step, &a.cache, &a.fresh, &err), err);
    must(mla_sync(be, &err), err);
    return a;
}

void release(const arm &a) {
    for (void *x : {a.cache.content, a.cache.rope, static_cast<void *>(a.cache.scale),
                    const_cast<void *>(a.fresh.kv), const_cast<void *>(a.fresh.q), a.fresh.q8,
                    a.fresh.q_rope, static_cast<void *>(a.fresh.q_scale), a.attn.out})
        mla_free(a.be, x);
    mla_plan_free(a.plan);
}

snap_status apart(const arm &a, snap_err *err) {
    snap_status st = SNAP_OK;
    if (a.fresh.q)
        st = mla_quant_q(a.be, a.rows, D_C, D_R, a.fresh.q, a.fresh.q8, a.fresh.q_rope,
                         a.fresh.q_scale, err);
    if (st == SNAP_OK)
        st = mla_append_kv(a.plan, &a.step, &a.cache, a.fresh.kv, err);
    return st == SNAP_OK ? mla_schedule(a.plan, &a.step, err) : st;
}

snap_status prepare(const arm &a, snap_err *err) {
    return mla_prepare(a.plan, &a.step, &a.cache, &a.fresh, err);
}

snap_status attend(const arm &a, snap_err *err) {
    return mla_run(a.plan, &a.step, &a.cache, &a.attn, err);
}

snap_status serve(const arm &a, snap_err *err) {
    const snap_status st = prepare(a, err);
    return st == SNAP_OK ? attend(a, err) : st;
}

using work = std::function<snap_status(const arm &, snap_err *)>;

/* Records each piece of work and measures them in turns, each after a flush. Returns medians in
 * us. */
std::vector<double> time_in_turns(const arm &a, const std::vector<work> &what, int turns) {
    snap_err err = {};
    std::vector<lab_recording *> recorded(what.size());
    std::vector<std::vector<double>> us(what.size());
    for (size_t i = 0; i < what.size(); i++) {
        must(lab_record(a.be, &err), err);
        must(what[i](a, &err), err);
        must(lab_record_end(a.be, &recorded[i], &err), err);
    }
    for (int turn = -2; turn < turns; turn++)
        for (size_t i = 0; i < what.size(); i++) {
            double ns = 0;
            must(lab_flush(a.be, &err), err);
            must(mla_timer_start(a.be, &err), err);
            must(lab_replay(a.be, recorded[i], &err), err);
            must(mla_timer_stop(a.be, &ns, &err), err);
            if (turn >= 0)
                us[i].push_back(ns * 1e-3);
        }
    std::vector<double> median;
    for (size_t i = 0; i < what.size(); i++) {
        std::sort(us[i].begin(), us[i].end());
        median.push_back(us[i][us[i].size() / 2]);
        lab_recording_free(a.be, recorded[i]);
    }
    return median;
}

void time_shape(mla_backend *be, const char *text, mla_precision p) {
    int heads, s_q, batch, context;
    must(sscanf(text, "%d,%d,%d,%d", &heads, &s_q, &batch, &context) == 4, text);
    arm a = make_arm(be, p, heads, s_q, std::vector<int32_t>(batch, context));
    const auto t = time_in_turns(
        a,
        {attend, serve,
         [](const arm &x, snap_err *e) {
             const snap_status st = apart(x, e);
             return st == SNAP_OK ? attend(x, e) : st;
         },
         prepare, [](const arm &x, snap_err *e) { return mla_schedule(x.plan, &x.step, e); },
         apart},
        31);
    printf("%-16s %-4s attention %7.1f   served +%5.1f (apart +%5.1f)   prepare %5.1f  plan %5.1f  "
           "apart %5.1f\n",
           text, mla_precision_name(p), t[0], t[1] - t[0], t[2] - t[0], t[3], t[4], t[5]);
    fflush(stdout);
    release(a);
}

void time_fetch(mla_backend *be, mla_precision p) {
    arm a = make_arm(be, p, 16, 1, std::vector<int32_t>(4, 131072));
    snap_err err = {};
    void *kv = mla_alloc(be, size_t(131072) * WIDTH * 2, &err);
    const auto t =
        time_in_turns(a, {[kv](const arm &x, snap_err *e) {
                          return mla_fetch_kv(x.plan, &x.step, &x.cache, 1, 0, 131072, kv, e);
                      }},
                      15);
    const double bytes = 131072.0 * (mla_cache_token_bytes(p, D_C, D_R) + WIDTH * 2);
    printf("fetch of 131072 tokens, %s: %.1f us, %.0f GB/s read and written\n",
           mla_precision_name(p), t[0], bytes / t[0] * 1e-3);
    mla_free(be, kv);
    mla_free(be, a.cache.content);
    mla_plan_free(a.plan);
}

} // namespace
