/* check_lab - tests the functions that the bench command relies on. Generated rows are compared
 * with the host's bit for bit, FP64 attention on the device with the FP64 oracle on the host.
 * Recordings and error messages are tested, too. The last check destroys the device's context on
 * purpose. Exits with 1 on the first failure. */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cuda/c_contract.h"
extern "C" {
#include "kernels/cut_sums.h"
#include "kernels/reference.h"
}

namespace {

constexpr int kContent = 512, kRope = 64, kWidth = kContent + kRope;
constexpr float kSoftmaxScale = 0.0721688f;

void must(bool good, const char *what, const snap_err &err) {
    if (good)
        return;
    fprintf(stderr, "WRONG: %s: %s\n", what, err.text);
    exit(1);
}

uint16_t bf16(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float from_bf16(uint16_t b) {
    const uint32_t u = static_cast<uint32_t>(b) << 16;
    float x;
    memcpy(&x, &u, 4);
    return x;
}

struct source {
    std::vector<uint16_t> host;
    draw_source on_host, on_device;

    source(mla_backend *be, uint64_t seed) : host(static_cast<size_t>(DRAW_POOL) * kWidth) {
        snap_err err = {};
        std::mt19937_64 rng(seed);
        std::normal_distribution<float> normal;
        for (auto &x : host)
            x = bf16(normal(rng));
        auto *p = static_cast<uint16_t *>(mla_alloc(be, host.size() * 2, &err));
        must(p && mla_copy_in(be, p, host.data(), host.size() * 2, &err) == SNAP_OK, "pool", err);
        on_host = {host.data(), kContent, kRope, seed};
        on_device = {p, kContent, kRope, seed};
    }
};

void check_draw(mla_backend *be, const source &s) {
    snap_err err = {};
    const std::vector<uint64_t> first = {0, 1ull << 40, ~0ull - 2, 77};
    const int rows = 9;
    const size_t n = first.size() * rows;
    auto *at = static_cast<uint64_t *>(mla_alloc(be, first.size() * 8, &err));
    void *out = mla_alloc(be, n * kWidth * 2, &err);
    std::vector<uint16_t> got(n * kWidth), want(kWidth);
    must(mla_copy_in(be, at, first.data(), first.size() * 8, &err) == SNAP_OK, "copy", err);
    must(lab_draw(be, &s.on_device, at, static_cast<int>(first.size()), rows, out, &err) == SNAP_OK,
         "draw", err);
    must(mla_copy_out(be, got.data(), out, got.size() * 2, &err) == SNAP_OK, "copy", err);
    for (size_t i = 0; i < n; i++) {
        draw_row(&s.on_host, first[i / rows] + i % rows, want.data());
        must(memcmp(want.data(), &got[i * kWidth], kWidth * 2) == 0, "a drawn row differs", err);
    }
    mla_free(be, at);
    mla_free(be, out);
    printf("draw: %zu rows equal\n", n);
}

/* Rows first .. first + n - 1 of a source as fp32. */
std::vector<float> rows_of(const source &s, uint64_t first, int64_t n) {
    std::vector<float> x(static_cast<size_t>(n) * kWidth);
    uint16_t row[kWidth];
    for (int64_t i = 0; i < n; i++) {
        draw_row(&s.on_host, first + static_cast<uint64_t>(i), row);
        for (int d = 0; d < kWidth; d++)
            x[i * kWidth + d] = from_bf16(row[d]);
    }
    return x;
}

/* @sums: how FP8 scores are summed; bits 0: in FP64. */
void check_attend(mla_backend *be, const source &tokens, const source &queries, mla_precision p,
                  int64_t context, mla_cut_sums sums = {}) {
    snap_err err = {};
    const int heads = 3, s_q = 2;
    const int64_t rows[] = {0, 5, 7, 9}; /* rows of sequences 0 and 1, with both query tokens */
    const ref_format f = p == MLA_FP8 ? REF_SNAPMLA : REF_BF16;
    double out[4 * kContent], lse[4], want[kContent], want_lse, worst = 0;
    const lab_step step = {
        p, heads, s_q, context, kSoftmaxScale, tokens.on_device, queries.on_device, false, sums};
    must(lab_attend(be, &step, rows, 4, out, lse, &err) == SNAP_OK, "attend", err);
    for (int i = 0; i < 4; i++) {
        const int64_t sequence = rows[i] / (heads * s_q), s = rows[i] / heads % s_q;
        ref_rows q = {}, k = {};
        const auto kx = rows_of(tokens, sequence * context, context),
                   qx = rows_of(queries, rows[i], 1);
        must(ref_rows_quantise(&k, f, kx.data(), context, kContent, kRope, &err) == SNAP_OK &&
                 ref_rows_quantise(&q, f, qx.data(), 1, kContent, kRope, &err) == SNAP_OK,
             "oracle", err);
        const int64_t visible = context - (s_q - 1 - s);
        ref_attend(&q, 0, &k, visible, kSoftmaxScale, REF_P_EXACT, want, &want_lse);
        if (sums.bits)
            want_lse = cut_sums_lse(sums, &q, 0, &k, visible, kSoftmaxScale);
        for (int d = 0; d < kContent && !sums.bits; d++)
            worst = fmax(worst, fabs(out[i * kContent + d] - want[d]));
        must(lse[i] == want_lse || fabs(lse[i] - want_lse) < 1e-11, "lse differs", err);
        ref_rows_release(&q);
        ref_rows_release(&k);
    }
    must(worst < 1e-11, "FP64 attention differs", err);
    printf("attend: %s, %lld tokens, sums of %d bits: within %.0e of the host's\n",
           mla_precision_name(p), static_cast<long long>(context), sums.bits, worst);
}

void check_recording(mla_backend *be) {
    snap_err err = {};
    lab_recording *r = nullptr;
    uint8_t byte = 0;
    void *p = mla_alloc(be, 4096, &err);
    must(lab_fill(be, p, 1, 4096, &err) == SNAP_OK && lab_record(be, &err) == SNAP_OK &&
             lab_fill(be, p, 2, 4096, &err) == SNAP_OK && lab_record_end(be, &r, &err) == SNAP_OK,
         "recording", err);
    must(mla_copy_out(be, &byte, p, 1, &err) == SNAP_OK && byte == 1, "recording must not run",
         err);
    must(lab_replay(be, r, &err) == SNAP_OK && mla_copy_out(be, &byte, p, 1, &err) == SNAP_OK &&
             byte == 2,
         "replay", err);
    lab_recording_free(be, r);
    mla_free(be, p);
    printf("recording: runs when it is replayed\n");
}

void expect(snap_status st, snap_status want, const char *text, const snap_err &err) {
    must(st == want && strstr(err.text, text), text, err);
    printf("error: %s\n", err.text);
}

void check_errors(mla_backend *be) {
    snap_err err = {};
    void *p = mla_alloc(be, static_cast<size_t>(1) << 50, &err);
    expect(p ? SNAP_OK : err.code, SNAP_E_NOMEM, "bytes of device memory", err);
    p = mla_alloc(be, 1 << 20, &err);
    must(p != nullptr, "memory after a failure", err);
    auto *bytes = static_cast<uint8_t *>(p);
    const mla_capacity cap = {MLA_FP8, 16, kContent, kRope, 2, 1, 256, 0};
    mla_plan *plan = nullptr;
    err = {};
    must(mla_plan_create(&plan, be, &cap, &err) == SNAP_OK, "plan", err);
    auto *words = reinterpret_cast<int32_t *>(p);
    mla_step step = {2, 1, words, words, 4};
    const mla_cache cache = {1, p, p, reinterpret_cast<float *>(p)};
    mla_attn attn = {bytes + 8, p, reinterpret_cast<float *>(p), kSoftmaxScale, p, nullptr};
    expect(mla_run(plan, &step, &cache, &attn, &err), SNAP_E_SHAPE, "aligned", err);
    step.batch = 3;
    err = {};
    expect(mla_schedule(plan, &step, &err), SNAP_E_SHAPE, "batch must be 1..2", err);
    mla_capacity wide = cap;
    wide.d_c = 1024;
    mla_plan *none = nullptr;
    err = {};
    expect(mla_plan_create(&none, be, &wide, &err), SNAP_E_UNSUPPORTED, "no kernel for fp8 at 1024",
           err);
    err = {};
    must(mla_sync(be, &err) == SNAP_OK, "a refused call must leave the device alone", err);
    /* Destroys the context: appends tokens from an invalid address to sequences that are not
     * empty. */
    step.batch = 2;
    err = {};
    must(lab_fill(be, p, 1, 1 << 20, &err) == SNAP_OK, "fill", err);
    const void *nowhere = reinterpret_cast<const void *>(uintptr_t(1) << 46);
    snap_status st = mla_append_kv(plan, &step, &cache, nowhere, &err);
    if (st == SNAP_OK)
        st = mla_sync(be, &err);
    expect(st, SNAP_E_DEVICE, "can't use the device any more", err);
    err = {};
    must(!mla_alloc(be, 256, &err), "memory of a lost device", err);
    printf("error: %s\n", err.text);
    mla_plan_free(plan);
}

} // namespace

int main() {
    snap_err err = {};
    mla_backend *be = nullptr;
    must(mla_backend_open(&be, "cuda", nullptr, &err) == SNAP_OK, "cuda", err);
    const source tokens(be, 5), queries(be, 6);
    check_draw(be, tokens);
    for (int64_t context : {1, 2, 65, 1023, 3000}) {
        check_attend(be, tokens, queries, MLA_BF16, context);
        check_attend(be, tokens, queries, MLA_FP8, context);
        check_attend(be, tokens, queries, MLA_FP8, context, {13, 32});
    }
    check_recording(be);
    check_errors(be);
    mla_backend_close(be);
    printf("ok\n");
    return 0;
}
