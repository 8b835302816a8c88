/* Checks that attention reaches every page of a step: contexts of up to 262,145 tokens, batches of
 * up to 256 sequences, and block tables that are wider than needed.
 *
 * The result is known in closed form. The content of token j of a sequence is 1 in one column,
 * which depends on the sequence and on j, and 0 in all others. The queries aim at some tokens,
 * which all get the same logit; the other tokens get logits that are lower by at least 30. Element
 * d of the output is therefore the share of the aimed tokens whose column is d. One aimed token
 * more, less or exchanged changes an element by 1/n of its value, where n is the number of aimed
 * tokens in its column: at most 16. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/conformance/check.h"
#include "kernels/draw.h"
#include "kernels/formats.h"

enum { kC = 512, kR = 64, kSlotStep = 37 };
static const float kKey = 32, kSlotQuery = 16, kTokenQuery = 32;

static uint64_t hash_of(int id, int64_t token) {
    return draw_mix(draw_mix((uint64_t)id) ^ (uint64_t)token);
}

/* The column in which the content of a token is 1. */
static int column_of(int id, int64_t token) {
    return (int)(hash_of(id, token) % kC);
}

/* ---- queries that aim at a slot or a token --------------------------------------------------- */

/* Row i aims at one slot of every page. */
static int64_t slot_of_row(int64_t i) {
    return (i * kSlotStep + 11) % MLA_PAGE;
}

/* RoPE column s of a token is not zero if the token is in slot s of its page. */
static void aim_at_slot(const step_spec *spec, int id, int64_t token, float *row) {
    row[spec->d_c + (token < 0 ? slot_of_row(-1 - token) : token % MLA_PAGE)] =
        token < 0 ? kSlotQuery : kKey;
    if (token >= 0)
        row[column_of(id, token)] = 1;
    for (int d = 0; d < spec->d_c && token < 0; d++)
        row[d] = 1;
}

static bool in_slot(const step_spec *spec, int b, int64_t i, int64_t token) {
    (void)spec;
    (void)b;
    return token % MLA_PAGE == slot_of_row(i);
}

/* Row i aims at one token, which all rows of its sequence see: row 0 at the last, row 1 at the
 * first, the others anywhere. */
static int64_t token_of_row(const step_spec *spec, int b, int64_t i) {
    int64_t last = spec->length[b] - spec->s_q;
    return i == 0 ? last : i == 1 ? 0 : (int64_t)(draw_mix((uint64_t)i) % (uint64_t)(last + 1));
}

/* The RoPE part of a token is +1 or -1 in each column. Two different tokens agree in about half of
 * the columns. In the steps below, none agrees with an aimed token in more than 50 of 64, so the
 * other logits are lower by at least 60. */
static void aim_at_token(const step_spec *spec, int id, int64_t token, float *row) {
    int64_t at = token < 0 ? token_of_row(spec, id, -1 - token) : token;
    uint64_t signs = draw_mix(hash_of(id, at));
    for (int d = 0; d < kR; d++)
        row[spec->d_c + d] = (signs >> d & 1 ? 1.0f : -1.0f) * (token < 0 ? kTokenQuery : 1.0f);
    if (token >= 0)
        row[column_of(id, token)] = 1;
    for (int d = 0; d < spec->d_c && token < 0; d++)
        row[d] = 1;
}

static bool is_token(const step_spec *spec, int b, int64_t i, int64_t token) {
    return token == token_of_row(spec, b, i);
}

typedef struct {
    step_change rows;
    bool (*aims)(const step_spec *spec, int b, int64_t i, int64_t token); /* row i at a token */
    float match; /* product of the RoPE parts of a query and of a token at which it aims */
} aim;

static const aim kSlots = {aim_at_slot, in_slot, 32 * 16},
                 kTokens = {aim_at_token, is_token, 64 * 32};

/* ---- the closed form ------------------------------------------------------------------------- */

/* Counts the tokens that row i of sequence b attends to, by column. If it sees none of those that
 * it aims at, all logits are equal, and it attends to every visible token. */
static int64_t expected(const step_case *s, const aim *a, int b, int64_t i, int count[kC],
                        double *logit) {
    const step_spec *spec = &s->spec;
    int64_t visible = spec->length[b] - (spec->s_q - 1 - i / spec->heads), n = 0;
    memset(count, 0, kC * sizeof *count);
    for (int all = 0; all < 2 && !n; all++)
        for (int64_t j = 0; j < visible; j++)
            if (all || a->aims(spec, b, i, j)) {
                count[column_of(spec->id[b], j)]++;
                *logit = (double)s->attn.softmax_scale * (1 + (all ? 0.0 : (double)a->match));
                n++;
            }
    return n;
}

/* The largest error of an element in tokens (out * n is the number of tokens), divided by the
 * number of tokens of its column, or by 1 if there are none. */
static double row_error(const uint16_t *out, const int count[kC], int64_t n) {
    double worst = 0;
    for (int d = 0; d < kC; d++) {
        double e =
            fabs((double)bf16_to_f32(out[d]) * (double)(n ? n : 1) - count[d]) / fmax(1, count[d]);
        worst = e <= worst ? worst : e; /* keeps a NaN */
        if (isnan(e))
            return e;
    }
    return worst;
}

static snap_status check_row(const check_context *c, const step_case *s, const aim *a, int b,
                             int64_t i, snap_err *err) {
    judge_bound bound = judge_bound_of(c->precision, REF_P_EXACT);
    int64_t row = (int64_t)b * s->spec.s_q * s->spec.heads + i;
    int count[kC];
    double logit = 0;
    int64_t n = expected(s, a, b, i, count, &logit);
    double lse = n ? logit + log((double)n) : -(double)INFINITY,
           got = (double)s->host.attn.lse[row];
    snap_status st = SNAP_OK;
    TRY(check_figure(c, "relative error of an element",
                     row_error((const uint16_t *)s->host.attn.out + row * kC, count, n),
                     bound.row_rel, err));
    if (n ? !(fabs(got - lse) <= bound.lse_err * fmax(1, fabs(lse))) : got != lse)
        st = err_set(err, SNAP_E_WRONG, "lse is %.7g instead of %.7g", got, lse);
cleanup:
    if (st != SNAP_OK)
        err_prefix(err, "sequence %d of %d, length %d, row %lld", b, s->spec.batch,
                   s->spec.length[b], (long long)i);
    return st;
}

/* A step must leave half of the device's memory free. */
static snap_status check_room(const check_context *c, const step_spec *spec, snap_err *err) {
    mla_backend_info info;
    mla_backend_describe(c->be, &info);
    size_t need = step_bytes(spec) * (info.host_memory ? 2 : 1);
    if (!info.memory_bytes || need <= info.memory_bytes / 2)
        return SNAP_OK;
    return err_set(err, SNAP_E_UNSUPPORTED, "the step needs %zu MiB, the device has %zu MiB",
                   need >> 20, info.memory_bytes >> 20);
}

/* Runs a step and compares all its rows. A step for which there is no memory is counted as one that
 * the backend does not support. */
static snap_status expect(const check_context *c, const step_spec *spec, const aim *a,
                          snap_err *err) {
    step_case s = {0};
    step_spec planted = *spec;
    planted.blank = true;
    planted.change = a->rows;
    snap_status st = SNAP_OK;
    TRY(check_room(c, &planted, err));
    TRY(step_make(&s, c->be, &planted, err));
    TRY(step_run(&s, err));
    for (int b = 0; b < s.spec.batch; b++)
        for (int64_t i = 0; i < (int64_t)s.spec.s_q * s.spec.heads; i++)
            TRY(check_row(c, &s, a, b, i, err));
cleanup:
    if (st != SNAP_OK)
        err_prefix(err, "%d heads, s_q %d", s.spec.heads, s.spec.s_q);
    step_free(&s);
    return check_count(c, st == SNAP_E_NOMEM ? SNAP_E_UNSUPPORTED : st, err);
}

/* ---- checks of reach ------------------------------------------------------------------------- */

typedef struct {
    int heads, s_q, splits, batch, length[3];
} long_step;

static snap_status expect_long(const check_context *c, const long_step *l, int n, const aim *a,
                               snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < n && st == SNAP_OK; i++) {
        step_spec spec = check_spec(c, l[i].batch, l[i].length);
        spec.heads = l[i].heads;
        spec.s_q = l[i].s_q;
        spec.splits = l[i].splits;
        st = expect(c, &spec, a, err);
    }
    return st;
}

static snap_status long_contexts(const check_context *c, snap_err *err) {
    static const long_step kSteps[] = {
        {1, 1, 0, 3, {8192, 4097, 4160}}, {16, 2, 0, 2, {8257, 65}},
        {128, 1, 0, 1, {4161}},           {3, 2, 7, 1, {40001}},
        {17, 1, 0, 1, {41000}},           {1, 1, 1, 1, {65536}},
        {1, 1, 0, 2, {131073, 40960}},    {1, 1, 0, 1, {262145}},
    };
    return expect_long(c, kSteps, sizeof kSteps / sizeof *kSteps, &kSlots, err);
}

static snap_status far_tokens(const check_context *c, snap_err *err) {
    static const long_step kSteps[] = {
        {16, 1, 0, 2, {8192, 12345}}, {33, 1, 0, 1, {16385}}, {2, 1, 0, 1, {131073}}};
    return expect_long(c, kSteps, sizeof kSteps / sizeof *kSteps, &kTokens, err);
}

/* The lengths vary from 0 up, in no order. */
static snap_status many_sequences(const check_context *c, snap_err *err) {
    static const struct {
        int heads, s_q, batch, longest, spare;
    } kSteps[] = {
        {1, 1, 256, 700, 1000}, {16, 2, 65, 300, 5}, {128, 1, 70, 130, 0}, {2, 2, 200, 500, 60}};
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < sizeof kSteps / sizeof *kSteps && st == SNAP_OK; i++) {
        int length[STEP_BATCH];
        for (int b = 0; b < kSteps[i].batch; b++)
            length[b] = (int)(hash_of(-1, b) % (uint64_t)(kSteps[i].longest + 1));
        step_spec spec = check_spec(c, kSteps[i].batch, length);
        spec.heads = kSteps[i].heads;
        spec.s_q = kSteps[i].s_q;
        spec.spare = kSteps[i].spare;
        st = expect(c, &spec, &kSlots, err);
    }
    return st;
}

const check checks_reach[] = {
    {"each page of a long context counts", true, long_contexts},
    {"one far token decides", true, far_tokens},
    {"each page of 256 sequences counts", true, many_sequences},
    {0},
};
