/* Checks that a NaN stays in sight: a score that is NaN makes its row NaN, and no other row changes
 * (mla.h). A merge of splits that mistakes such a row for one without a visible token would give
 * zeros, which look like a result. */
#include <math.h>

#include "kernels/conformance/check.h"
#include "kernels/formats.h"

enum { kTokenFrom = 100, kTokenTo = 129 };

/* A few tokens, which only longer sequences have, get a NaN in their RoPE part. So the scores are
 * NaN, but not the values. */
static void spoil_tokens(const step_spec *spec, int id, int64_t token, float *row) {
    (void)id;
    if (token >= kTokenFrom && token < kTokenTo)
        row[spec->d_c] = NAN;
}

/* Every other row of queries, from the first one on, gets a NaN. So all its scores are NaN. */
static void spoil_queries(const step_spec *spec, int id, int64_t token, float *row) {
    (void)spec, (void)id;
    if (token < 0 && token % 2 != 0)
        row[3] = NAN;
}

/* Whether a row attends to a token whose score is NaN. */
static bool is_spoilt(const step_spec *spec, int64_t row) {
    int each = spec->s_q * spec->heads, length = spec->length[row / each];
    int64_t i = row % each, seen = length - (spec->s_q - 1 - i / spec->heads);
    return spec->change == spoil_tokens ? seen > kTokenFrom : seen > 0 && i % 2 == 0;
}

static snap_status expect_row(const step_case *good, const step_case *bad, int64_t row,
                              snap_err *err) {
    int d_c = bad->spec.d_c;
    const uint16_t *x = (const uint16_t *)bad->host.attn.out + row * d_c,
                   *y = (const uint16_t *)good->host.attn.out + row * d_c;
    const float *lse = bad->host.attn.lse, *good_lse = good->host.attn.lse;
    if (!is_spoilt(&bad->spec, row)) {
        bool same = lse[row] == good_lse[row];
        for (int d = 0; d < d_c; d++)
            same = same && x[d] == y[d];
        return same ? SNAP_OK
                    : err_set(err, SNAP_E_WRONG, "row %lld changes, but its scores are numbers",
                              (long long)row);
    }
    for (int d = 0; d < d_c; d++)
        if (!isnan(bf16_to_f32(x[d])))
            return err_set(err, SNAP_E_WRONG, "a score of row %lld is NaN, but its output is %g",
                           (long long)row, (double)bf16_to_f32(x[d]));
    return isnan(lse[row])
               ? SNAP_OK
               : err_set(err, SNAP_E_WRONG, "a score of row %lld is NaN, but its lse is %g",
                         (long long)row, (double)lse[row]);
}

static snap_status expect_nan(const check_context *c, step_spec spec, step_change change,
                              snap_err *err) {
    step_case good = {0}, bad = {0};
    snap_status st = SNAP_OK;
    TRY(step_make(&good, c->be, &spec, err));
    TRY(step_run(&good, err));
    spec.change = change;
    TRY(step_make(&bad, c->be, &spec, err));
    TRY(step_run(&bad, err));
    for (int64_t row = 0; row < (int64_t)spec.batch * bad.spec.s_q * bad.spec.heads; row++)
        TRY(expect_row(&good, &bad, row, err));
cleanup:
    if (st != SNAP_OK)
        err_prefix(err, "splits %d", spec.splits);
    step_free(&good);
    step_free(&bad);
    return check_count(c, st, err);
}

/* A sequence is one part, few parts or many. With spoil_tokens() one or two parts of a row have NaN
 * scores, and with spoil_queries() all of them. */
static snap_status nan_rows(const check_context *c, snap_err *err) {
    static const int kSplits[] = {1, 3, 64, 0}, kLengths[] = {0, 5, 700, 130}, kLong[] = {1900};
    static const step_change kChanges[] = {spoil_tokens, spoil_queries};
    step_spec few = check_spec(c, 4, kLengths), one = check_spec(c, 1, kLong);
    snap_status st = SNAP_OK;
    few.heads = 16;
    one.heads = 5;
    one.s_q = 2;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++) {
            few.splits = one.splits = kSplits[i];
            TRY(expect_nan(c, few, kChanges[j], err));
            TRY(expect_nan(c, one, kChanges[j], err));
        }
cleanup:
    return st;
}

const check checks_not_finite[] = {
    {"a NaN score gives a NaN row", true, nan_rows},
    {0},
};
