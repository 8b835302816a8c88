#include "kernels/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/cut_sums.h"
#include "kernels/formats.h"

/* ---- row selection -------------------------------------------------------------------------- */

static int64_t total_rows(const judge_step *in) {
    return (int64_t)in->step.batch * in->step.s_q * in->heads;
}

/* Marks a random row of one sequence. */
static void pick_from_sequence(unsigned char *pick, const judge_step *in, int b, rng *r) {
    int per_sequence = in->step.s_q * in->heads;
    pick[(int64_t)b * per_sequence + rng_below(r, (uint32_t)per_sequence)] = 1;
}

static void pick_rows(unsigned char *pick, const judge_step *in, judge_sample sample) {
    int64_t total = total_rows(in), picked = 0;
    if (sample.rows <= 0 || sample.rows >= total) {
        memset(pick, 1, (size_t)total);
        return;
    }
    rng r = rng_make(sample.seed, rng_stream_of("judge rows"));
    int shortest = 0, longest = 0;
    for (int b = 1; b < in->step.batch; b++) {
        shortest = in->step.seqlens[b] < in->step.seqlens[shortest] ? b : shortest;
        longest = in->step.seqlens[b] > in->step.seqlens[longest] ? b : longest;
    }
    pick_from_sequence(pick, in, longest, &r);
    if (shortest != longest && sample.rows > 1)
        pick_from_sequence(pick, in, shortest, &r);
    for (int64_t i = 0; i < total; i++)
        picked += pick[i];
    while (picked < sample.rows) {
        int64_t i = rng_below(&r, (uint32_t)total);
        picked += !pick[i];
        pick[i] = 1;
    }
}

/* ---- one row -------------------------------------------------------------------------------- */

static void add_sums(judge_sums *all, const judge_sums *more) {
    all->diff2 += more->diff2;
    all->ref2 += more->ref2;
    all->out2 += more->out2;
    all->dot += more->dot;
}

static void note_row(judge_error *e, double rel, int b, int s, int h) {
    if (rel < e->row_rel)
        return;
    e->row_rel = rel;
    e->worst_b = b;
    e->worst_s = s;
    e->worst_h = h;
}

static void compare_row(judge_error *e, const uint16_t *out, const double *ref, int d_c, int b,
                        int s, int h) {
    judge_sums row = {0};
    for (int d = 0; d < d_c; d++) {
        double x = (double)bf16_to_f32(out[d]), diff = x - ref[d];
        if (!isfinite(x) || !isfinite(ref[d])) {
            e->nonfinite++;
            continue;
        }
        row.diff2 += diff * diff;
        row.ref2 += ref[d] * ref[d];
        row.out2 += x * x;
        row.dot += x * ref[d];
        e->out_abs = fmax(e->out_abs, fabs(diff));
    }
    note_row(e, row.diff2 == 0.0 ? 0.0 : sqrt(row.diff2 / row.ref2), b, s, h);
    add_sums(&e->sums, &row);
    e->rows++;
}

static void summarise(judge_error *e) {
    const judge_sums *all = &e->sums;
    if (all->diff2 > 0.0)
        e->out_rel = sqrt(all->diff2 / all->ref2);
    if (all->ref2 > 0.0 && all->out2 > 0.0)
        e->cosine = 1.0 - all->dot / sqrt(all->ref2 * all->out2);
}

void judge_add(judge_error *all, const judge_error *part, int first) {
    note_row(all, part->row_rel, first + part->worst_b, part->worst_s, part->worst_h);
    add_sums(&all->sums, &part->sums);
    summarise(all);
    all->rows += part->rows;
    all->nonfinite += part->nonfinite;
    all->out_abs = fmax(all->out_abs, part->out_abs);
    all->lse_err = fmax(all->lse_err, part->lse_err);
    all->lse_alike = fmax(all->lse_alike, part->lse_alike);
}

static double lse_off(float lse, double ref) {
    return fabs((double)lse - ref) / fmax(1.0, fabs(ref));
}

/* Returns the row's error; 0 if one of the values is not finite. */
static double compare_lse(judge_error *e, float lse, double ref) {
    if (isinf(ref) && (double)lse == ref)
        return 0;
    if (!isfinite(lse) || !isfinite(ref)) {
        e->nonfinite++;
        return 0;
    }
    double off = lse_off(lse, ref);
    e->lse_err = fmax(e->lse_err, off);
    return off;
}

/* ---- a step --------------------------------------------------------------------------------- */

typedef struct {
    const judge_step *in;
    ref_pv pv;
    double *o; /* [d_c] scratch */
    judge_error *e;
} judge;

static void judge_row(judge *j, const ref_rows *q, const ref_rows *k, int b, int s, int h) {
    const judge_step *in = j->in;
    int64_t i = (int64_t)s * in->heads + h, visible = k->rows - (in->step.s_q - 1 - s);
    int64_t row = (int64_t)b * in->step.s_q * in->heads + i;
    double lse;
    ref_attend(q, i, k, visible, (double)in->attn.softmax_scale, j->pv, j->o, &lse);
    compare_row(j->e, (const uint16_t *)in->attn.out + row * in->d_c, j->o, in->d_c, b, s, h);
    if (!in->attn.lse)
        return;
    float got = in->attn.lse[row];
    double off = compare_lse(j->e, got, lse);
    if (off <= judge_bound_of(in->precision, j->pv).lse_err)
        return;
    if (in->precision == MLA_FP8 && in->sums.bits > 0)
        off = fmin(off, lse_off(got, cut_sums_lse(in->sums, q, i, k, visible,
                                                  (double)in->attn.softmax_scale)));
    j->e->lse_alike = fmax(j->e->lse_alike, off);
}

/* @pick: marks of the sequence's rows, [s_q][heads]. */
static snap_status judge_sequence(judge *j, int b, const unsigned char *pick, snap_err *err) {
    const judge_step *in = j->in;
    int rows = in->step.s_q * in->heads;
    if (!memchr(pick, 1, (size_t)rows))
        return SNAP_OK;
    snap_status st = SNAP_OK;
    ref_rows q = {0}, k = {0};
    TRY(ref_rows_from_queries(&q, in->precision, in->d_c, in->d_r, &in->attn, (int64_t)b * rows,
                              rows, err));
    TRY(ref_rows_from_cache(&k, in->precision, in->d_c, in->d_r, &in->cache,
                            in->step.block_table + (int64_t)b * in->step.table_width,
                            in->step.seqlens[b], err));
    for (int i = 0; i < rows; i++)
        if (pick[i])
            judge_row(j, &q, &k, b, i / in->heads, i % in->heads);
cleanup:
    ref_rows_release(&q);
    ref_rows_release(&k);
    return st;
}

snap_status judge_rows(judge_error *out, const judge_step *in, ref_pv pv, judge_sample sample,
                       snap_err *err) {
    *out = (judge_error){0};
    snap_status st = SNAP_OK;
    judge j = {.in = in, .pv = pv, .e = out};
    unsigned char *pick = calloc((size_t)total_rows(in), 1);
    j.o = calloc((size_t)in->d_c, sizeof *j.o);
    if (!pick || !j.o) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a reference of %d columns", in->d_c);
        goto cleanup;
    }
    pick_rows(pick, in, sample);
    for (int b = 0; b < in->step.batch; b++)
        TRY(judge_sequence(&j, b, pick + (int64_t)b * in->step.s_q * in->heads, err));
    summarise(out);
cleanup:
    free(pick);
    free(j.o);
    return st;
}

judge_error judge_known_rows(const judge_known *in) {
    judge_error e = {0};
    for (int i = 0; i < in->rows; i++) {
        int64_t row = in->row[i], query = row / in->heads;
        compare_row(&e, in->out + row * in->d_c, in->ref + (int64_t)i * in->d_c, in->d_c,
                    (int)(query / in->s_q), (int)(query % in->s_q), (int)(row % in->heads));
        if (in->lse)
            (void)compare_lse(&e, in->lse[row], in->ref_lse[i]);
    }
    summarise(&e);
    e.lse_alike = e.lse_err;
    return e;
}

/* ---- bounds and the verdict ----------------------------------------------------------------- */

judge_bound judge_bound_of(mla_precision p, ref_pv pv) {
    if (p == MLA_BF16)
        return (judge_bound){.out_rel = 2.5e-3, .row_rel = 5e-3, .lse_err = 1e-5};
    if (pv == REF_P_E4M3)
        return (judge_bound){.out_rel = 1e-2, .row_rel = 2e-2, .lse_err = 5e-4};
    return (judge_bound){.out_rel = 3e-2, .row_rel = 6e-2, .lse_err = 5e-4};
}

judge_bound judge_bound_rows(judge_bound bound, int64_t rows) {
    static const double kEnough = 64;
    double n = fmin(fmax((double)rows, 1), kEnough);
    double few = (1 / sqrt(n) - 1 / sqrt(kEnough)) / (1 - 1 / sqrt(kEnough));
    bound.out_rel += few * (bound.row_rel - bound.out_rel);
    return bound;
}

static snap_status check_figure(const char *what, double value, double bound, const judge_error *e,
                                snap_err *err) {
    if (value <= bound)
        return SNAP_OK;
    return err_set(err, SNAP_E_WRONG,
                   "%s is %.3g, above %.3g; worst row: sequence %d, query %d, head %d", what, value,
                   bound, e->worst_b, e->worst_s, e->worst_h);
}

double judge_lse(const judge_error *e, judge_bound bound) {
    return e->lse_err <= bound.lse_err ? e->lse_err : e->lse_alike;
}

snap_status judge_verdict(const judge_error *e, judge_bound bound, snap_err *err) {
    snap_status st = SNAP_OK;
    if (e->nonfinite)
        return err_set(err, SNAP_E_WRONG, "%lld elements are not finite", (long long)e->nonfinite);
    TRY(check_figure("relative error of the output", e->out_rel, bound.out_rel, e, err));
    TRY(check_figure("relative error of a row", e->row_rel, bound.row_rel, e, err));
    TRY(check_figure("error of lse", judge_lse(e, bound), bound.lse_err, e, err));
cleanup:
    return st;
}
