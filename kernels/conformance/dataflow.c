/* Compares the dataflow operations bit for bit with the scalar definitions of formats.h. Any NaN
 * may stand for another NaN. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/conformance/check.h"
#include "kernels/formats.h"

enum { kC = 512, kR = 64, kWidth = kC + kR };

/* ---- input rows ------------------------------------------------------------------------------ */

enum { kKinds = 5, kQuantRows = 60 };

/* A number of one of five kinds: normal, zero, huge, with a wide range of exponents, or normal with
 * some infinities and NaNs. Subnormal inputs do not occur, because some devices flush them to
 * zero, which OpenCL allows. */
static uint16_t odd_number(rng *r, int kind) {
    double x = rng_normal(r);
    switch (kind) {
    case 0:
        return bf16_from_f64(x);
    case 1:
        return 0;
    case 2:
        return bf16_from_f64(x * 1e37);
    case 3:
        return bf16_from_f64(ldexp(x, (int)rng_below(r, 60) - 40));
    default:
        return rng_below(r, 40) ? bf16_from_f64(x) : rng_below(r, 3) ? 0x7fc1 : 0xff80;
    }
}

static bool is_nan(uint16_t b) {
    return (b & 0x7fff) > 0x7f80;
}

static snap_status same_bf16(const char *what, const uint16_t *got, const uint16_t *want, int64_t n,
                             snap_err *err) {
    for (int64_t i = 0; i < n; i++)
        if (got[i] != want[i] && !(is_nan(got[i]) && is_nan(want[i])))
            return err_set(err, SNAP_E_WRONG, "%s: element %lld is %04x, expected %04x", what,
                           (long long)i, (unsigned)got[i], (unsigned)want[i]);
    return SNAP_OK;
}

static snap_status same_e4m3(const uint8_t *got, const uint8_t *want, int64_t n, snap_err *err) {
    for (int64_t i = 0; i < n; i++)
        if (got[i] != want[i] && (got[i] & want[i] & 0x7f) != 0x7f)
            return err_set(err, SNAP_E_WRONG, "content: element %lld is %02x, expected %02x",
                           (long long)i, (unsigned)got[i], (unsigned)want[i]);
    return SNAP_OK;
}

static snap_status same_scale(const float *got, const float *want, int64_t n, snap_err *err) {
    for (int64_t i = 0; i < n; i++)
        if (got[i] != want[i] && !(isnan(got[i]) && isnan(want[i])))
            return err_set(err, SNAP_E_WRONG, "scale %lld is %.9g, expected %.9g", (long long)i,
                           (double)got[i], (double)want[i]);
    return SNAP_OK;
}

/* ---- quantising queries ---------------------------------------------------------------------- */

typedef struct {
    uint16_t q[kQuantRows * kWidth], rope[2][kQuantRows * kR];
    uint8_t q8[2][kQuantRows * kC];
    float scale[2][kQuantRows]; /* every [2]: [0] is the expected value, [1] the backend's */
} quant_rows;

static void fill_quant_rows(quant_rows *h, mla_scale rule) {
    rng r = rng_make(21, 0);
    for (int i = 0; i < kQuantRows; i++) {
        uint16_t *row = h->q + i * kWidth;
        for (int d = 0; d < kWidth; d++)
            row[d] = odd_number(&r, i % kKinds);
        h->scale[0][i] = quant_row(row, kC, kR, rule, h->q8[0] + i * kC, h->rope[0] + i * kR);
    }
}

static snap_status compare_quant_rows(const quant_rows *h, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(same_scale(h->scale[1], h->scale[0], kQuantRows, err));
    TRY(same_e4m3(h->q8[1], h->q8[0], (int64_t)kQuantRows * kC, err));
    TRY(same_bf16("rope", h->rope[1], h->rope[0], (int64_t)kQuantRows * kR, err));
cleanup:
    return st;
}

static snap_status quant_on_device(mla_backend *be, quant_rows *h, void *area[4], snap_err *err) {
    const size_t bytes[4] = {sizeof h->q, sizeof h->q8[1], sizeof h->rope[1], sizeof h->scale[1]};
    snap_status st = SNAP_OK;
    for (int i = 0; i < 4; i++) {
        area[i] = mla_alloc(be, bytes[i], err);
        if (!area[i])
            return SNAP_E_NOMEM;
    }
    TRY(mla_copy_in(be, area[0], h->q, bytes[0], err));
    TRY(mla_quant_q(be, kQuantRows, kC, kR, area[0], area[1], area[2], area[3], err));
    TRY(mla_copy_out(be, h->q8[1], area[1], bytes[1], err));
    TRY(mla_copy_out(be, h->rope[1], area[2], bytes[2], err));
    TRY(mla_copy_out(be, h->scale[1], area[3], bytes[3], err));
cleanup:
    return st;
}

static snap_status quantise(const check_context *c, snap_err *err) {
    void *area[4] = {0};
    quant_rows *h = calloc(1, sizeof *h);
    if (!h)
        return err_set(err, SNAP_E_NOMEM, "out of memory for rows");
    mla_backend_info info;
    mla_backend_describe(c->be, &info);
    fill_quant_rows(h, info.scale);
    snap_status st = quant_on_device(c->be, h, area, err);
    if (st == SNAP_OK)
        st = compare_quant_rows(h, err);
    for (int i = 0; i < 4; i++)
        mla_free(c->be, area[i]);
    free(h);
    return check_count(c, st, err);
}

/* ---- appending and fetching ------------------------------------------------------------------ */

/* Collects the step's new tokens in @kv and overwrites their slots in the images with 0xee. */
static void take_new_rows(step_case *s, uint16_t *kv) {
    const step_spec *spec = &s->spec;
    mla_page_bytes page = mla_cache_page_bytes(spec->precision, kC, kR);
    const size_t each[] = {page.content / MLA_PAGE, page.rope / MLA_PAGE, page.scale / MLA_PAGE};
    for (int i = 0; i < spec->batch * spec->s_q; i++) {
        int b = i / spec->s_q;
        int64_t token = spec->length[b] - spec->s_q + i % spec->s_q;
        step_row(spec, b, token < 0 ? 999 : token, kv + i * kWidth);
        if (token < 0)
            continue;
        int64_t slot = mla_slot(s->host.step.block_table + (int64_t)b * s->host.step.table_width,
                                s->cache.pages, token);
        for (int a = 0; a < 3; a++)
            if (each[a])
                memset((char *)s->area[AREA_CONTENT + a].host + (size_t)slot * each[a], 0xee,
                       each[a]);
    }
}

/* A copy of the planes, one after the other. The caller frees it. */
static char *copy_of_planes(const step_case *s) {
    size_t total = 0;
    for (int a = AREA_CONTENT; a <= AREA_SCALE; a++)
        total += s->area[a].bytes;
    char *copy = malloc(total), *at = copy;
    for (int a = AREA_CONTENT; copy && a <= AREA_SCALE; a++) {
        if (s->area[a].bytes)
            memcpy(at, s->area[a].host, s->area[a].bytes);
        at += s->area[a].bytes;
    }
    return copy;
}

static snap_status compare_planes(step_case *s, const char *want, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int a = AREA_CONTENT; a <= AREA_SCALE; a++) {
        TRY(step_copy_out(s, (step_area_name)a, err));
        if (s->area[a].bytes && memcmp(want, s->area[a].host, s->area[a].bytes) != 0)
            TRY(err_set(err, SNAP_E_WRONG, "plane %d has wrong bytes after appending",
                        a - AREA_CONTENT));
        want += s->area[a].bytes;
    }
cleanup:
    return st;
}

/* Appends tokens to overwritten slots, first with mla_append_kv() and then with mla_prepare(). Both
 * must restore the planes exactly. */
static snap_status append_restores(step_case *s, const char *want, void **device, snap_err *err) {
    enum { kRows = 6 };
    uint16_t kv[kRows * kWidth];
    snap_status st = SNAP_OK;
    take_new_rows(s, kv);
    *device = mla_alloc(s->be, sizeof kv, err);
    if (!*device)
        return SNAP_E_NOMEM;
    TRY(mla_copy_in(s->be, *device, kv, sizeof kv, err));
    for (int a = AREA_CONTENT; a <= AREA_SCALE; a++)
        TRY(step_copy_in(s, (step_area_name)a, err));
    TRY(mla_append_kv(s->plan, &s->step, &s->cache, *device, err));
    TRY(compare_planes(s, want, err));
    take_new_rows(s, kv);
    for (int a = AREA_CONTENT; a <= AREA_SCALE; a++)
        TRY(step_copy_in(s, (step_area_name)a, err));
    mla_fresh fresh = {.kv = *device};
    TRY(mla_prepare(s->plan, &s->step, &s->cache, &fresh, err));
    TRY(compare_planes(s, want, err));
cleanup:
    return st;
}

static snap_status append(const check_context *c, snap_err *err) {
    static const int kLengths[] = {100, 2}; /* sequence 1 is shorter than s_q: its first new token
                                               has no slot */
    step_spec spec = check_spec(c, 2, kLengths);
    step_case s;
    void *device = NULL;
    char *want = NULL;
    spec.s_q = 3;
    snap_status st = step_make(&s, c->be, &spec, err);
    if (st == SNAP_OK) {
        want = copy_of_planes(&s);
        st = want ? append_restores(&s, want, &device, err)
                  : err_set(err, SNAP_E_NOMEM, "out of memory for a cache");
    }
    free(want);
    mla_free(c->be, device);
    step_free(&s);
    return check_count(c, st, err);
}

enum { kFirst = 50, kFetched = 60, kTokens = 100 };

static snap_status fetch_returns(step_case *s, void **device, snap_err *err) {
    uint16_t got[kFetched * kWidth], row[STEP_WIDTH], rope[kR];
    uint8_t c8[kC];
    snap_status st = SNAP_OK;
    *device = mla_alloc(s->be, sizeof got, err);
    if (!*device)
        return SNAP_E_NOMEM;
    TRY(mla_fetch_kv(s->plan, &s->step, &s->cache, 0, kFirst, kFetched, *device, err));
    TRY(mla_copy_out(s->be, got, *device, sizeof got, err));
    for (int i = 0; i < kFetched; i++) {
        step_row(&s->spec, 0, kFirst + i, row);
        if (s->spec.precision == MLA_FP8) {
            float a = quant_row(row, kC, kR, s->scale, c8, rope);
            dequant_row(c8, rope, a, kC, kR, row);
        }
        if (kFirst + i >= kTokens)
            memset(row, 0, sizeof row);
        TRY(same_bf16("a fetched token", got + i * kWidth, row, kWidth, err));
    }
cleanup:
    return st;
}

static snap_status fetch(const check_context *c, snap_err *err) {
    static const int kLengths[] = {kTokens, 30};
    step_spec spec = check_spec(c, 2, kLengths);
    step_case s;
    void *device = NULL;
    snap_status st = step_make(&s, c->be, &spec, err);
    if (st == SNAP_OK)
        st = fetch_returns(&s, &device, err);
    mla_free(c->be, device);
    step_free(&s);
    return check_count(c, st, err);
}

const check checks_dataflow[] = {
    {"quantising queries, bit for bit", false, quantise},
    {"appending tokens, bit for bit", true, append},
    {"fetching tokens, bit for bit", true, fetch},
    {0},
};
