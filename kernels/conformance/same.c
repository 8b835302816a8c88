/* Checks that reruns and some changes of the input leave the result bit-identical, and that
 * splitting a sequence changes only the rounding of the result. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/conformance/check.h"
#include "kernels/formats.h"

static snap_status made_and_run(step_case *s, mla_backend *be, const step_spec *spec,
                                snap_err *err) {
    snap_status st = step_make(s, be, spec, err);
    return st == SNAP_OK ? step_run(s, err) : st;
}

static snap_status equal_bytes(const char *what, const void *a, const void *b, size_t bytes,
                               snap_err *err) {
    const unsigned char *x = a, *y = b;
    for (size_t i = 0; i < bytes; i++)
        if (x[i] != y[i])
            return err_set(err, SNAP_E_WRONG, "%s differs first at byte %zu of %zu", what, i,
                           bytes);
    return SNAP_OK;
}

static snap_status equal_results(const step_case *a, const step_case *b, snap_err *err) {
    snap_status st = equal_bytes("out", a->area[AREA_OUT].host, b->area[AREA_OUT].host,
                                 a->area[AREA_OUT].bytes, err);
    return st == SNAP_OK ? equal_bytes("lse", a->area[AREA_LSE].host, b->area[AREA_LSE].host,
                                       a->area[AREA_LSE].bytes, err)
                         : st;
}

static snap_status expect_same(const check_context *c, const step_spec *one, const step_spec *other,
                               snap_err *err) {
    step_case a = {0}, b = {0};
    snap_status st = SNAP_OK;
    TRY(made_and_run(&a, c->be, one, err));
    TRY(made_and_run(&b, c->be, other, err));
    TRY(equal_results(&a, &b, err));
cleanup:
    step_free(&a);
    step_free(&b);
    return check_count(c, st, err);
}

static step_spec four(const check_context *c) {
    static const int kLengths[] = {300, 64, 0, 129};
    return check_spec(c, 4, kLengths);
}

static snap_status page_order(const check_context *c, snap_err *err) {
    step_spec spec = four(c), other;
    snap_status st = SNAP_OK;
    for (spec.heads = 3; spec.heads <= 19; spec.heads += 16) {
        other = spec;
        other.pages_seed = 123;
        TRY(expect_same(c, &spec, &other, err));
    }
cleanup:
    return st;
}

static snap_status poison(const check_context *c, snap_err *err) {
    step_spec spec = four(c), other;
    snap_status st = SNAP_OK;
    for (spec.heads = 3; spec.heads <= 19; spec.heads += 16) {
        other = spec;
        other.poison = 0x7d; /* large finite numbers instead of NaN */
        TRY(expect_same(c, &spec, &other, err));
    }
cleanup:
    return st;
}

static snap_status reruns(const check_context *c, snap_err *err) {
    static const int kLengths[] = {700, 65};
    enum { kReruns = 5 };
    step_spec spec = check_spec(c, 2, kLengths);
    step_case a = {0}, b = {0};
    snap_status st = SNAP_OK;
    spec.heads = 6;
    TRY(made_and_run(&a, c->be, &spec, err));
    TRY(step_make(&b, c->be, &spec, err));
    for (int i = 0; i < kReruns; i++) {
        TRY(step_run(&b, err));
        TRY(equal_results(&a, &b, err));
    }
cleanup:
    step_free(&a);
    step_free(&b);
    return check_count(c, st, err);
}

/* With a fixed `splits`, a sequence's rows do not depend on its position in the batch or on the
 * other sequences. */
static snap_status neighbours(const check_context *c, snap_err *err) {
    static const int kLengths[] = {300, 64, 1, 200}, kOther[] = {200, 300, 1000, 64, 1};
    static const int kOtherId[] = {3, 0, 9, 1, 2}, kWhere[] = {1, 3, 4, 0};
    step_spec spec = check_spec(c, 4, kLengths), other = check_spec(c, 5, kOther);
    step_case a = {0}, b = {0};
    snap_status st = SNAP_OK;
    memcpy(other.id, kOtherId, sizeof kOtherId);
    spec.heads = other.heads = 6;
    spec.splits = other.splits = 4;
    TRY(made_and_run(&a, c->be, &spec, err));
    TRY(made_and_run(&b, c->be, &other, err));
    size_t row = a.area[AREA_OUT].bytes / 4;
    for (int i = 0; i < 4; i++)
        TRY(equal_bytes("the output of a sequence with other neighbours",
                        (char *)a.area[AREA_OUT].host + (size_t)i * row,
                        (char *)b.area[AREA_OUT].host + (size_t)kWhere[i] * row, row, err));
cleanup:
    step_free(&a);
    step_free(&b);
    return check_count(c, st, err);
}

static double distance(const step_case *a, const step_case *b) {
    const uint16_t *x = a->area[AREA_OUT].host, *y = b->area[AREA_OUT].host;
    double diff = 0, norm = 0;
    for (size_t i = 0; i < a->area[AREA_OUT].bytes / 2; i++) {
        double u = (double)bf16_to_f32(x[i]), v = (double)bf16_to_f32(y[i]);
        diff += (u - v) * (u - v);
        norm += v * v;
    }
    return sqrt(diff / norm);
}

/* A backend that carries the rounding scale of FP8 P from page to page starts a new scale at each
 * split, so results for different splits differ by more. */
static double cut_bound(const check_context *c) {
    return c->row->exact ? judge_bound_of(c->precision, REF_P_EXACT).out_rel : 0x1p-8;
}

static snap_status expect_near(const check_context *c, const step_case *whole, int splits,
                               snap_err *err) {
    step_spec spec = whole->spec;
    step_case cut = {0};
    snap_status st = SNAP_OK;
    spec.splits = splits;
    TRY(made_and_run(&cut, c->be, &spec, err));
    TRY(check_figure(c, "difference from the unsplit sequence", distance(&cut, whole), cut_bound(c),
                     err));
    if (c->row->exact)
        TRY(check_exact(c, &cut, err));
    const float *a = cut.area[AREA_LSE].host, *b = whole->area[AREA_LSE].host;
    for (size_t i = 0; i < cut.area[AREA_LSE].bytes / sizeof *a; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-5f))
            TRY(err_set(err, SNAP_E_WRONG, "lse differs by %g", (double)fabsf(a[i] - b[i])));
cleanup:
    if (st != SNAP_OK)
        err_prefix(err, "splits %d", splits);
    step_free(&cut);
    return check_count(c, st, err);
}

/* Splitting changes the running maximum that P is rounded against. Results must agree within the
 * rounding of bf16 or, if the kernel has its own rule for FP8 P, within the bounds for exact
 * probabilities. */
static snap_status splits(const check_context *c, snap_err *err) {
    static const int kSplits[] = {2, 5, 64, 1000000, 0}, kLengths[] = {900, 70, 3};
    step_spec spec = check_spec(c, 3, kLengths);
    step_case whole = {0};
    snap_status st = SNAP_OK;
    spec.heads = 5;
    spec.splits = 1;
    TRY(made_and_run(&whole, c->be, &spec, err));
    check_rule(c, &whole, 0);
    if (c->row->exact)
        TRY(check_exact(c, &whole, err));
    for (int i = 0; i < 5; i++)
        TRY(expect_near(c, &whole, kSplits[i], err));
cleanup:
    step_free(&whole);
    return st == SNAP_E_UNSUPPORTED ? check_count(c, st, err) : st;
}

const check checks_same[] = {
    {"order of pages changes no bit", true, page_order},
    {"contents of unused slots change no bit", true, poison},
    {"reruns are identical", true, reruns},
    {"neighbours change no bit", true, neighbours},
    {"splits agree within rounding", true, splits},
    {0},
};
