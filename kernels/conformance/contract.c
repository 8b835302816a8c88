/* Checks of the contract of kernels/mla.h, besides results: a backend describes itself, its memory
 * and timer work, it rejects bad arguments, and it survives bad data on the device. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/conformance/check.h"

static snap_status description(const check_context *c, snap_err *err) {
    mla_backend_info info;
    mla_backend_describe(c->be, &info);
    if (!info.name[0] || !info.device[0] || !info.kernel[0])
        return err_set(err, SNAP_E_WRONG, "name, device and kernel must not be empty");
    return check_count(c, SNAP_OK, err);
}

/* Copied bytes come back unchanged, also at an offset, and neighbouring memory stays unchanged. */
static snap_status copies(const check_context *c, unsigned char *a, unsigned char *b,
                          snap_err *err) {
    enum { kBytes = 1000, kPart = 512 };
    unsigned char in[kBytes], out[kBytes];
    snap_status st = SNAP_OK;
    for (int i = 0; i < kBytes; i++)
        in[i] = (unsigned char)(i * 7);
    memset(out, 0, sizeof out);
    if ((uintptr_t)a % MLA_ALIGN || (uintptr_t)b % MLA_ALIGN)
        return err_set(err, SNAP_E_WRONG, "memory is not aligned to %d bytes", MLA_ALIGN);
    TRY(mla_copy_in(c->be, a, in, kBytes, err));
    TRY(mla_copy_in(c->be, b, out, kBytes, err));
    TRY(mla_copy_in(c->be, a + kPart, in, kBytes - kPart, err));
    TRY(mla_sync(c->be, err));
    TRY(mla_copy_out(c->be, out, a, kBytes, err));
    if (memcmp(out, in, kPart) != 0 || memcmp(out + kPart, in, kBytes - kPart) != 0)
        TRY(err_set(err, SNAP_E_WRONG, "copied bytes come back changed"));
    TRY(mla_copy_out(c->be, out, b + 1, kBytes - 1, err));
    for (int i = 0; i < kBytes - 1; i++)
        if (out[i])
            TRY(err_set(err, SNAP_E_WRONG, "a copy changed memory beside it"));
cleanup:
    return st;
}

static snap_status memory(const check_context *c, snap_err *err) {
    void *a = mla_alloc(c->be, 1000, err), *b = a ? mla_alloc(c->be, 1000, err) : NULL;
    snap_status st = b ? copies(c, a, b, err) : SNAP_E_NOMEM;
    mla_free(c->be, a);
    mla_free(c->be, b);
    mla_free(c->be, NULL);
    snap_err refused = {0};
    void *huge = st == SNAP_OK ? mla_alloc(c->be, SIZE_MAX / 2, &refused) : NULL;
    if (huge || (st == SNAP_OK && refused.code == SNAP_OK)) {
        st = err_set(err, SNAP_E_WRONG,
                     "an allocation of SIZE_MAX / 2 bytes succeeded, or failed without an error");
        mla_free(c->be, huge);
    }
    return check_count(c, st, err);
}

static snap_status timer(const check_context *c, snap_err *err) {
    static const int kLengths[] = {512};
    step_spec spec = check_spec(c, 1, kLengths);
    step_case s;
    double ns = -1;
    spec.heads = 16;
    snap_status st = SNAP_OK;
    TRY(step_make(&s, c->be, &spec, err));
    TRY(mla_timer_start(c->be, err));
    TRY(mla_schedule(s.plan, &s.step, err));
    TRY(mla_run(s.plan, &s.step, &s.cache, &s.attn, err));
    TRY(mla_timer_stop(c->be, &ns, err));
    if (!(ns > 0 && ns < 60e9))
        st = err_set(err, SNAP_E_WRONG, "the backend's timer reports %g ns for a step", ns);
cleanup:
    step_free(&s);
    return check_count(c, st, err);
}

/* ---- rejected arguments ---------------------------------------------------------------------- */

static snap_status refused(const check_context *c, const char *what, snap_status st,
                           const snap_err *why, snap_err *err) {
    if (st != SNAP_E_SHAPE || why->code != SNAP_E_SHAPE || !why->text[0])
        return err_set(err, SNAP_E_WRONG, "%s must fail with SNAP_E_SHAPE and a message", what);
    return check_count(c, SNAP_OK, err);
}

static snap_status capacities(const check_context *c, snap_err *err) {
    const mla_capacity ok = {
        .heads = 1, .d_c = 512, .d_r = 64, .batch = 1, .s_q = 1, .max_tokens = 64};
    mla_capacity bad[] = {ok, ok, ok, ok, ok};
    bad[0].heads = 129;
    bad[1].d_c = 500;
    bad[2].s_q = 5;
    bad[3].batch = 0;
    bad[4].max_tokens = MLA_MAX_CONTEXT + 1;
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < sizeof bad / sizeof *bad && st == SNAP_OK; i++) {
        mla_plan *plan;
        snap_err why = {0};
        st = refused(c, "a capacity out of range", mla_plan_create(&plan, c->be, &bad[i], &why),
                     &why, err);
    }
    return st;
}

static snap_status bad_runs(const check_context *c, step_case *s, snap_err *err) {
    snap_err why[4] = {{0}};
    mla_step step = s->step;
    mla_attn attn = s->attn;
    snap_status st = SNAP_OK;
    TRY(refused(c, "a run before mla_schedule()",
                mla_run(s->plan, &s->step, &s->cache, &s->attn, &why[0]), &why[0], err));
    step.batch = 3;
    TRY(refused(c, "a batch beyond the capacity", mla_schedule(s->plan, &step, &why[1]), &why[1],
                err));
    TRY(mla_schedule(s->plan, &s->step, err));
    attn.q = (const char *)attn.q + 2;
    TRY(refused(c, "a query at an odd address",
                mla_run(s->plan, &s->step, &s->cache, &attn, &why[2]), &why[2], err));
    attn = s->attn;
    attn.softmax_scale = NAN;
    TRY(refused(c, "a scale of NaN", mla_run(s->plan, &s->step, &s->cache, &attn, &why[3]), &why[3],
                err));
    attn = s->attn;
    attn.lse = NULL;
    TRY(mla_run(s->plan, &s->step, &s->cache, &attn, err));
    TRY(mla_sync(c->be, err));
cleanup:
    return st;
}

static snap_status arguments(const check_context *c, snap_err *err) {
    static const int kLengths[] = {100, 30};
    step_spec spec = check_spec(c, 2, kLengths);
    step_case s;
    spec.heads = 4;
    snap_status st = step_make(&s, c->be, &spec, err);
    if (st == SNAP_OK)
        st = bad_runs(c, &s, err);
    step_free(&s);
    return check_count(c, st, err);
}

/* Sequence 1 has a bad length or page number. mla_check_step() must report it, the step must end,
 * and sequence 0 must keep its result. */
static snap_status survives(const check_context *c, step_case *s, const uint16_t *want,
                            snap_err *err) {
    size_t half = s->area[AREA_OUT].bytes / 2;
    snap_status st = SNAP_OK;
    snap_err why = {0};
    TRY(step_copy_in(s, AREA_LENGTHS, err));
    TRY(step_copy_in(s, AREA_TABLE, err));
    TRY(refused(c, "mla_check_step() on bad device data",
                mla_check_step(s->plan, &s->step, &s->cache, &why), &why, err));
    TRY(step_run(s, err));
    if (memcmp(want, s->area[AREA_OUT].host, half) != 0)
        st = err_set(err, SNAP_E_WRONG, "bad device data of one sequence changes another");
cleanup:
    return st;
}

static snap_status bad_data(const check_context *c, step_case *s, uint16_t *want, snap_err *err) {
    static const int32_t kBadLengths[] = {1 << 30, -5, INT32_MIN},
                         kBadPages[] = {1000, -1, INT32_MAX};
    int32_t *lengths = s->area[AREA_LENGTHS].host, *table = s->area[AREA_TABLE].host;
    int32_t length = lengths[1];
    snap_status st = SNAP_OK;
    TRY(step_run(s, err));
    memcpy(want, s->area[AREA_OUT].host, s->area[AREA_OUT].bytes / 2);
    for (int i = 0; i < 3; i++) {
        lengths[1] = kBadLengths[i];
        TRY(survives(c, s, want, err));
    }
    lengths[1] = length;
    for (int i = 0; i < 3; i++) {
        table[s->step.table_width] = kBadPages[i];
        TRY(survives(c, s, want, err));
    }
cleanup:
    return st;
}

static snap_status device_data(const check_context *c, snap_err *err) {
    static const int kLengths[] = {100, 70};
    step_spec spec = check_spec(c, 2, kLengths);
    step_case s;
    uint16_t *want = NULL;
    spec.heads = 4;
    spec.splits = 1;
    snap_status st = step_make(&s, c->be, &spec, err);
    if (st == SNAP_OK) {
        want = calloc(s.area[AREA_OUT].bytes, 1);
        st = want ? bad_data(c, &s, want, err)
                  : err_set(err, SNAP_E_NOMEM, "out of memory for an output");
    }
    free(want);
    step_free(&s);
    return check_count(c, st, err);
}

const check checks_contract[] = {
    {"description", false, description},
    {"memory and copies", false, memory},
    {"timer", true, timer},
    {"capacities out of range", false, capacities},
    {"bad arguments of a run", true, arguments},
    {"bad lengths and pages are clamped", true, device_data},
    {0},
};
