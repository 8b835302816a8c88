/* Checks of steps whose result is known in closed form. The reference of judge.h is used only for
 * one log-sum-exp. */
#include <math.h>
#include <string.h>

#include "kernels/conformance/check.h"
#include "kernels/formats.h"

enum { kC = 512 }; /* default d_c of step_make() */

static snap_status made_and_run(step_case *s, mla_backend *be, const step_spec *spec,
                                snap_err *err) {
    snap_status st = step_make(s, be, spec, err);
    return st == SNAP_OK ? step_run(s, err) : st;
}

/* No visible token: O = 0, LSE = -inf. */
static snap_status no_token_case(const step_case *s, snap_err *err) {
    const uint16_t *out = s->host.attn.out;
    for (int h = 0; h < s->spec.heads; h++) {
        if (!isinf(s->host.attn.lse[h]) || s->host.attn.lse[h] > 0)
            return err_set(err, SNAP_E_WRONG, "lse of a row with no visible token is %g",
                           (double)s->host.attn.lse[h]);
        for (int d = 0; d < kC; d++)
            if (out[h * kC + d] != 0)
                return err_set(err, SNAP_E_WRONG,
                               "the output of a row with no visible token is not zero");
    }
    return SNAP_OK;
}

/* One visible token: the output is its content, whatever the logit. */
static snap_status one_token_case(const step_case *s, int b, snap_err *err) {
    ref_rows k;
    snap_status st = ref_rows_from_cache(
        &k, s->spec.precision, kC, s->spec.d_r, &s->host.cache,
        s->host.step.block_table + (int64_t)b * s->host.step.table_width, 1, err);
    const uint16_t *out = (const uint16_t *)s->host.attn.out + (int64_t)b * s->spec.heads * kC;
    for (int i = 0; st == SNAP_OK && i < s->spec.heads * kC; i++) {
        float v = k.content[i % kC] * k.scale[0], o = bf16_to_f32(out[i]);
        if (!(fabsf(o - v) <= 0x1p-8f * fabsf(v)))
            st = err_set(err, SNAP_E_WRONG, "content %g of the only visible token comes out as %g",
                         (double)v, (double)o);
    }
    ref_rows_release(&k);
    return st;
}

static snap_status nothing_and_one(const check_context *c, snap_err *err) {
    static const int kLengths[] = {0, 1};
    step_spec spec = check_spec(c, 2, kLengths);
    step_case s = {0};
    snap_status st = SNAP_OK;
    spec.heads = 7;
    TRY(made_and_run(&s, c->be, &spec, err));
    TRY(no_token_case(&s, err));
    TRY(one_token_case(&s, 1, err));
cleanup:
    step_free(&s);
    return check_count(c, st, err);
}

static void zero_content(const step_spec *spec, int id, int64_t token, float *row) {
    (void)id;
    (void)token;
    memset(row, 0, (size_t)spec->d_c * sizeof *row);
}

static snap_status content_of_zeros(const check_context *c, snap_err *err) {
    static const int kLengths[] = {200};
    step_spec spec = check_spec(c, 1, kLengths);
    step_case s = {0};
    judge_error e;
    snap_status st = SNAP_OK;
    spec.change = zero_content;
    spec.heads = 9;
    TRY(made_and_run(&s, c->be, &spec, err));
    const uint16_t *out = s.host.attn.out;
    for (int i = 0; i < spec.heads * kC; i++)
        if (out[i] & 0x7fff)
            TRY(err_set(err, SNAP_E_WRONG, "content of zeros gives the output %g",
                        (double)bf16_to_f32(out[i])));
    TRY(judge_rows(&e, &s.host, REF_P_EXACT, (judge_sample){0}, err));
    TRY(check_figure(c, "error of lse", e.lse_err, 1e-5, err));
cleanup:
    step_free(&s);
    return check_count(c, st, err);
}

static void zero_query(const step_spec *spec, int id, int64_t token, float *row) {
    (void)id;
    if (token < 0)
        memset(row, 0, (size_t)(spec->d_c + spec->d_r) * sizeof *row);
}

/* Relative distance of an output row from the mean of its tokens before quantisation. */
static double distance_from_mean(const step_case *s, const uint16_t *out) {
    double mean[kC] = {0}, diff = 0, norm = 0;
    uint16_t token[STEP_WIDTH];
    int tokens = s->spec.length[0];
    for (int j = 0; j < tokens; j++) {
        step_row(&s->spec, 0, j, token);
        for (int d = 0; d < kC; d++)
            mean[d] += (double)bf16_to_f32(token[d]) / tokens;
    }
    for (int d = 0; d < kC; d++) {
        double e = (double)bf16_to_f32(out[d]) - mean[d];
        diff += e * e;
        norm += mean[d] * mean[d];
    }
    return sqrt(diff / norm);
}

/* Equal logits: the output is the mean of V, and the LSE is ln L. */
static snap_status equal_logits(const check_context *c, snap_err *err) {
    static const int kLengths[] = {200};
    step_spec spec = check_spec(c, 1, kLengths);
    step_case s = {0};
    snap_status st = SNAP_OK;
    spec.change = zero_query;
    spec.heads = 5;
    TRY(made_and_run(&s, c->be, &spec, err));
    for (int h = 0; h < 5; h++)
        if (!(fabs((double)s.host.attn.lse[h] - log(200.0)) < 1e-5))
            TRY(err_set(err, SNAP_E_WRONG, "lse of 200 equal logits is %g",
                        (double)s.host.attn.lse[h]));
    TRY(check_figure(c, "distance from the mean",
                     distance_from_mean(&s, (const uint16_t *)s.host.attn.out + 2 * kC),
                     c->precision == MLA_FP8 ? 5e-2 : 2.5e-3, err));
cleanup:
    step_free(&s);
    return check_count(c, st, err);
}

const check checks_edges[] = {
    {"no token, one token", true, nothing_and_one},
    {"content of zeros", true, content_of_zeros},
    {"equal logits give the mean", true, equal_logits},
    {0},
};
