/* Compares each arm with FP64 attention: head counts, long contexts, many sequences, widths, causal
 * masks, and extreme values for the FP8 format. MLA_BF16 is compared with exact probabilities.
 * MLA_FP8 is compared with P rounded as the format says, or with exact probabilities if the backend
 * rounds P by a rule of its own. The last check uses exact probabilities for both. */
#include <math.h>

#include "kernels/conformance/check.h"

enum { kRows = 10 };

static ref_pv own_pv(mla_precision p) {
    return p == MLA_FP8 ? REF_P_E4M3 : REF_P_EXACT;
}

static snap_status judge_by(const check_context *c, const step_case *s, ref_pv pv, int64_t rows,
                            judge_error *e, snap_err *err) {
    snap_status st = judge_rows(e, &s->host, pv, (judge_sample){.rows = rows, .seed = 5}, err);
    return st == SNAP_OK ? judge_verdict(e, judge_bound_of(c->precision, pv), err) : st;
}

static void note_lse(conformance_row *row, const judge_error *e, judge_bound bound) {
    row->lse = fmax(row->lse, e->lse_err);
    row->lse_alike = fmax(row->lse_alike, e->lse_alike);
    row->lse_bound = bound.lse_err;
}

void check_rule(const check_context *c, const step_case *s, int64_t rows) {
    judge_error e;
    snap_err unlike = {0};
    if (c->precision == MLA_BF16 || c->row->exact ||
        judge_by(c, s, REF_P_E4M3, rows, &e, &unlike) != SNAP_E_WRONG)
        return;
    c->row->exact = true;
    c->row->worst = (double)NAN;
}

snap_status check_exact(const check_context *c, const step_case *s, snap_err *err) {
    judge_error e;
    return judge_by(c, s, REF_P_EXACT, 0, &e, err);
}

/* Judges a step. If an FP8 backend turns out to round P by its own rule, this and all later cases
 * of the check are judged against exact probabilities. */
static snap_status judge_case(const check_context *c, step_case *s, ref_pv pv, int64_t rows,
                              snap_err *err) {
    judge_error e;
    if (pv == REF_P_E4M3)
        check_rule(c, s, rows);
    pv = pv == REF_P_E4M3 && c->row->exact ? REF_P_EXACT : pv;
    snap_status st = judge_by(c, s, pv, rows, &e, err);
    if (st != SNAP_OK && st != SNAP_E_WRONG)
        return st;
    note_lse(c->row, &e, judge_bound_of(c->precision, pv));
    snap_status figure = check_figure(c, "relative error of a row", e.row_rel,
                                      judge_bound_of(c->precision, pv).row_rel, err);
    return st == SNAP_OK ? figure : st;
}

static snap_status expect(const check_context *c, const step_spec *spec, int64_t rows,
                          snap_err *err) {
    step_case s;
    snap_status st = step_make(&s, c->be, spec, err);
    if (st == SNAP_OK)
        st = step_run(&s, err);
    if (st == SNAP_OK)
        st = judge_case(c, &s, own_pv(c->precision), rows, err);
    if (st != SNAP_OK)
        err_prefix(err, "%d heads, s_q %d, %d + %d", s.spec.heads, s.spec.s_q, s.spec.d_c,
                   s.spec.d_r);
    step_free(&s);
    return check_count(c, st, err);
}

static snap_status heads(const check_context *c, snap_err *err) {
    static const int kHeads[] = {1, 2, 3, 8, 16, 17, 64, 100, 128},
                     kLengths[] = {0, 1, 63, 64, 65, 200};
    step_spec spec = check_spec(c, 6, kLengths);
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < sizeof kHeads / sizeof *kHeads; i++) {
        spec.heads = kHeads[i];
        TRY(expect(c, &spec, kRows, err));
    }
cleanup:
    return st;
}

static snap_status longer(const check_context *c, snap_err *err) {
    static const int kLengths[] = {3000, 1027}, kLongest[] = {131073};
    step_spec spec = check_spec(c, 2, kLengths), longest = check_spec(c, 1, kLongest);
    spec.heads = 16;
    longest.heads = 2;
    snap_status st = expect(c, &spec, kRows, err);
    return st == SNAP_OK ? expect(c, &longest, 1, err) : st;
}

static snap_status more_sequences(const check_context *c, snap_err *err) {
    int length[STEP_BATCH];
    for (int b = 0; b < STEP_BATCH; b++)
        length[b] = b * 97 % 131;
    step_spec spec = check_spec(c, STEP_BATCH, length);
    spec.heads = 2;
    return expect(c, &spec, 64, err);
}

static snap_status widths(const check_context *c, snap_err *err) {
    static const int kWidths[][2] = {{256, 32}, {96, 32}, {32, 96}, {1024, 64}},
                     kLengths[] = {130, 7};
    step_spec spec = check_spec(c, 2, kLengths);
    snap_status st = SNAP_OK;
    for (int i = 0; i < 4; i++)
        for (spec.heads = 2; spec.heads <= 22; spec.heads += 20) {
            spec.d_c = kWidths[i][0];
            spec.d_r = kWidths[i][1];
            TRY(expect(c, &spec, kRows, err));
        }
cleanup:
    return st;
}

/* Lengths below s_q leave some rows without a visible token. With 66 tokens and s_q 3 or 4, the
 * first rows see nothing of page 1. */
static snap_status causal(const check_context *c, snap_err *err) {
    static const int kLengths[] = {66, 3, 1, 0, 129, 64};
    step_spec spec = check_spec(c, 6, kLengths);
    snap_status st = SNAP_OK;
    for (spec.s_q = 2; spec.s_q <= 4; spec.s_q++)
        for (spec.heads = 1; spec.heads <= 5; spec.heads += 4)
            TRY(expect(c, &spec, 40, err));
    spec.s_q = 4;
    spec.heads = 128;
    TRY(expect(c, &spec, 24, err));
cleanup:
    return st;
}

static void rope_outliers(const step_spec *spec, int id, int64_t token, float *row) {
    (void)id;
    if (token >= 0)
        row[spec->d_c + (int)(token % 5)] *= 1000.0f;
}

/* Adds 100 to the logits of every second page, through the first RoPE column. */
static void add_to_pages(const step_spec *spec, int64_t token, float *row, int64_t odd) {
    float *channel = row + spec->d_c;
    *channel = token < 0 ? 100.0f : token / MLA_PAGE % 2 == odd ? 1.0f / 0.0721687849f : 0.0f;
}

static void high_low(const step_spec *spec, int id, int64_t token, float *row) {
    (void)id;
    add_to_pages(spec, token, row, 0);
}

static void low_high(const step_spec *spec, int id, int64_t token, float *row) {
    (void)id;
    add_to_pages(spec, token, row, 1);
}

/* Gives the tokens norms over a range of 22 powers of two, so that a_k varies widely. */
static void wide_tokens(const step_spec *spec, int id, int64_t token, float *row) {
    (void)id;
    static const float kPowers[] = {0x1p-14f, 0x1p-9f, 0x1p-5f, 0x1p-1f, 1.0f, 0x1p3f, 0x1p8f};
    for (int d = 0; token >= 0 && d < spec->d_c; d++)
        row[d] *= kPowers[token % 7];
}

static snap_status changed(const check_context *c, step_change change, snap_err *err) {
    static const int kLengths[] = {300, 128, 65};
    step_spec spec = check_spec(c, 3, kLengths);
    snap_status st = SNAP_OK;
    spec.change = change;
    for (spec.heads = 2; spec.heads <= 18; spec.heads += 16)
        TRY(expect(c, &spec, 12, err));
cleanup:
    return st;
}

static snap_status outliers(const check_context *c, snap_err *err) {
    return changed(c, rope_outliers, err);
}

static snap_status far_maxima(const check_context *c, snap_err *err) {
    snap_status st = changed(c, high_low, err);
    return st == SNAP_OK ? changed(c, low_high, err) : st;
}

static snap_status wide_norms(const check_context *c, snap_err *err) {
    return changed(c, wide_tokens, err);
}

/* Compares a step of 1500 tokens with FP64 attention that does not round P, the softmax
 * probabilities. The bound, judge_bound_of(), allows the error of the format to which the arm
 * rounds P. */
static snap_status exact_probabilities(const check_context *c, snap_err *err) {
    static const int kLengths[] = {1500};
    step_spec spec = check_spec(c, 1, kLengths);
    step_case s;
    spec.heads = 4;
    snap_status st = step_make(&s, c->be, &spec, err);
    if (st == SNAP_OK)
        st = step_run(&s, err);
    if (st == SNAP_OK)
        st = judge_case(c, &s, REF_P_EXACT, 0, err);
    step_free(&s);
    return check_count(c, st, err);
}

const check checks_arms[] = {
    {"1 to 128 heads", true, heads},
    {"long contexts", true, longer},
    {"256 sequences", true, more_sequences},
    {"other widths", true, widths},
    {"causal rows, s_q to 4", true, causal},
    {"RoPE outliers of 1e3", true, outliers},
    {"logits 100 apart", true, far_maxima},
    {"wide norms of tokens", true, wide_norms},
    {"against exact probabilities", true, exact_probabilities},
    {0},
};
