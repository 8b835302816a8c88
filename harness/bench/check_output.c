#include "harness/bench/check_output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/rng.h"
#include "harness/bench/packed_judge.h"
#include "kernels/formats.h"

/* How much of an output is checked. Before timing it is kBefore. Of a timed output it is kBefore,
 * too, if the backend has lab_attend() and the arm has no cache format; otherwise kTimed. */
typedef struct {
    int rows, sequences; /* how many rows of a large cell are checked, and over how many sequences
                            they are spread */
    double whole;        /* rows x context up to which the host checks all rows */
} sample_size;
static const sample_size kBefore = {64, 8, 1 << 19}, kTimed = {8, 2, 1 << 15};

static const double kHostWork = 1 << 16; /* rows x context up to which the host checks a cell of a
                                            backend with lab_attend(); not for BF16 queries
                                            beside an FP8 cache */
static const double kPlantedError = 0x1p-6; /* bound of row_error() */

void verified_release(verified *v) {
    bench_output_release(&v->checked);
    *v = (verified){0};
}

/* ---- one sequence, rebuilt on the host ---- */

typedef struct {
    const bench_arm *arm;
    const bench_output *o;
    uint64_t seed;
    int64_t rows; /* rows to check in this sequence; 0 = all */
    int b;
    snap_status st;
    snap_err err;
    judge_error error;
} sequence_job;

/* Host arrays that stand for those of mla_cache and mla_attn, for one sequence. */
typedef struct {
    void *content, *q;
    uint16_t *rope, *q_rope;
    float *scale, *q_scale;
    int32_t *table;
} planes;

static void planes_release(planes *p) {
    free(p->content);
    free(p->q);
    free(p->rope);
    free(p->q_rope);
    free(p->scale);
    free(p->q_scale);
    free(p->table);
}

static bool planes_alloc(planes *p, const bench_shape *s, mla_precision precision, size_t pages) {
    size_t tokens = pages * MLA_PAGE, rows = (size_t)s->s_q * (size_t)s->heads;
    size_t d_c = (size_t)s->d_c, d_r = (size_t)s->d_r;
    size_t content = precision == MLA_FP8 ? d_c : 2 * (d_c + d_r);
    p->content = malloc(tokens * content);
    p->q = malloc(rows * content);
    p->rope = malloc(tokens * d_r * sizeof *p->rope);
    p->q_rope = malloc(rows * d_r * sizeof *p->q_rope);
    p->scale = malloc(tokens * sizeof *p->scale);
    p->q_scale = malloc(rows * sizeof *p->q_scale);
    p->table = malloc(pages * sizeof *p->table);
    return p->content && p->q && p->rope && p->q_rope && p->scale && p->q_scale && p->table;
}

/* Writes rows @first, @first + 1, ... of a source, whose pool is host memory, in the form that the
 * precision stores. */
static void fill_rows(const bench_arm *arm, const draw_source *from, uint64_t first, int64_t count,
                      void *content, uint16_t *rope, float *scale) {
    int64_t d_c = from->d_c, d_r = from->d_r, width = d_c + d_r;
    bool fp8 = bench_arm_precision(arm) == MLA_FP8;
    mla_backend_info info;
    mla_backend_describe(bench_arm_backend(arm), &info);
    uint16_t row[MLA_MAX_CONTENT + MLA_MAX_ROPE];
    for (int64_t i = 0; i < count; i++) {
        draw_row(from, first + (uint64_t)i, fp8 ? row : (uint16_t *)content + i * width);
        if (fp8)
            scale[i] = quant_row(row, from->d_c, from->d_r, info.scale,
                                 (uint8_t *)content + i * d_c, rope + i * d_r);
    }
}

/* A backend with lab_attend() is compared with exact probabilities, because its FP8 kernels choose
 * the scale for rounding P by rules of their own. */
static ref_pv reference_pv(const bench_arm *arm) {
    if (lab_can_attend(bench_arm_backend(arm)))
        return REF_P_EXACT;
    return ref_format_pv(bench_arm_precision(arm) == MLA_FP8 ? REF_SNAPMLA : REF_BF16);
}

static judge_bound bound_of(const bench_arm *arm) {
    const arm_format *f = bench_arm_format(arm);
    return f ? arm_format_bound(f) : bench_kind_bound(bench_arm_kind(arm), reference_pv(arm));
}

static void judge_sequence(sequence_job *job) {
    const bench_arm *arm = job->arm;
    const bench_shape *s = bench_arm_shape(arm);
    int32_t length = (int32_t)bench_shape_length(s, job->b);
    size_t pages = (size_t)(length + MLA_PAGE - 1) / MLA_PAGE;
    int64_t rows = (int64_t)s->s_q * s->heads, first_row = job->b * rows;
    mla_precision precision = bench_arm_precision(arm);
    planes p = {0};
    if (!planes_alloc(&p, s, precision, pages)) {
        job->st = err_set(&job->err, SNAP_E_NOMEM, "out of memory for checking a sequence");
        goto cleanup;
    }
    for (size_t i = 0; i < pages; i++)
        p.table[i] = (int32_t)i;
    const numbers *from = bench_arm_numbers(arm);
    draw_source tokens = {from->tokens, s->d_c, s->d_r, from->seed};
    draw_source queries = {from->queries, s->d_c, s->d_r, job->o->query_seed};
    int64_t sequence = (int64_t)job->o->set * s->batch + job->b;
    fill_rows(arm, &tokens, bench_arm_token_index(arm, sequence, 0), length, p.content, p.rope,
              p.scale);
    fill_rows(arm, &queries, (uint64_t)first_row, rows, p.q, p.q_rope, p.q_scale);
    mla_backend_info info;
    mla_backend_describe(bench_arm_backend(arm), &info);
    judge_step in = {
        .sums = info.fp8_sums,
        .precision = precision,
        .heads = s->heads,
        .d_c = s->d_c,
        .d_r = s->d_r,
        .step = {.batch = 1,
                 .s_q = s->s_q,
                 .seqlens = &length,
                 .block_table = p.table,
                 .table_width = (int)pages},
        .cache = {.pages = (int64_t)pages, .content = p.content, .rope = p.rope, .scale = p.scale},
        .attn = {.q = p.q,
                 .q_rope = p.q_rope,
                 .q_scale = p.q_scale,
                 .softmax_scale = bench_softmax_scale(),
                 .out = job->o->out + first_row * s->d_c,
                 .lse = job->o->lse + first_row},
    };
    ref_pv pv = reference_pv(arm);
    judge_sample sample = {.rows = job->rows, .seed = job->seed + (uint64_t)job->b};
    job->st = judge_rows(&job->error, &in, pv, sample, &job->err);
cleanup:
    planes_release(&p);
}

static void run_job(void *ctx, int worker, int64_t index) {
    (void)worker;
    judge_sequence((sequence_job *)ctx + index);
}

/* ---- all sequences ---- */

/* Chooses @n different sequences of the batch: the first n of a seeded shuffle. */
static void pick_sequences(int *order, int batch, int n, uint64_t seed) {
    rng r = rng_make(seed, rng_stream_of("verify sequences"));
    for (int b = 0; b < batch; b++)
        order[b] = b;
    for (int i = 0; i < n; i++) {
        int j = i + (int)rng_below(&r, (uint32_t)(batch - i));
        int held = order[i];
        order[i] = order[j];
        order[j] = held;
    }
}

static int64_t rows_per_sequence(const bench_shape *s, int sequences, int rows, bool whole) {
    int64_t all = (int64_t)s->s_q * s->heads, wanted = (rows + sequences - 1) / sequences;
    return whole || wanted >= all ? 0 : wanted;
}

static snap_status run_jobs(sequence_job *jobs, int n, snap_err *err) {
    int cpus = parallel_cpus();
    parallel *pool;
    snap_status st = parallel_create(&pool, cpus < n ? cpus : n, err);
    if (st != SNAP_OK)
        return st;
    parallel_for(pool, n, run_job, jobs);
    parallel_free(pool);
    for (int i = 0; i < n && st == SNAP_OK; i++)
        if (jobs[i].st != SNAP_OK)
            st = err_set(err, jobs[i].st, "%s", jobs[i].err.text);
    return st;
}

static bool is_small(const bench_arm *arm, double work) {
    return (double)bench_arm_rows(arm) * (double)bench_arm_shape(arm)->context <= work;
}

/* Judges @rows rows (0: all) of each of the sequences order[n]. */
static snap_status judge_sequences(judge_error *e, const bench_arm *arm, const bench_output *o,
                                   const int *order, int n, int64_t rows, uint64_t seed,
                                   snap_err *err) {
    sequence_job *jobs = calloc((size_t)n, sizeof *jobs);
    if (!jobs)
        return err_set(err, SNAP_E_NOMEM, "out of memory for checking %d sequences", n);
    for (int i = 0; i < n; i++)
        jobs[i] = (sequence_job){.arm = arm, .o = o, .seed = seed, .rows = rows, .b = order[i]};
    snap_status st = run_jobs(jobs, n, err);
    *e = (judge_error){0};
    for (int i = 0; i < n && st == SNAP_OK; i++)
        judge_add(e, &jobs[i].error, jobs[i].b);
    free(jobs);
    return st;
}

static snap_status judge_on_host(judge_error *e, const bench_arm *arm, const bench_output *o,
                                 sample_size size, packed_references *known, uint64_t seed,
                                 snap_err *err) {
    const bench_shape *s = bench_arm_shape(arm);
    bool whole = is_small(arm, size.whole);
    int n = whole || s->batch < size.sequences ? s->batch : size.sequences;
    int64_t rows = rows_per_sequence(s, n, size.rows, whole);
    int *order = malloc((size_t)s->batch * sizeof *order);
    if (!order)
        return err_set(err, SNAP_E_NOMEM, "out of memory for checking %d sequences", n);
    pick_sequences(order, s->batch, n, seed);
    const packed_sample sample = {.arm = arm,
                                  .o = o,
                                  .sequence = order,
                                  .sequences = n,
                                  .rows = rows ? rows : (int64_t)s->s_q * s->heads,
                                  .seed = seed};
    snap_status st = bench_arm_format(arm) ? packed_judge(e, &sample, known, err)
                                           : judge_sequences(e, arm, o, order, n, rows, seed, err);
    free(order);
    return st;
}

/* ---- large cells, checked on the device ---- */

/* The sampled rows of all chosen sequences, and their FP64 results with exact probabilities. */
typedef struct {
    int sequences, rows; /* numbers of sequences, and of rows in each of them */
    int *order;
    int64_t *row;
    double *ref, *lse;
} sampled_rows;

static void sampled_rows_release(sampled_rows *k) {
    free(k->order);
    free(k->row);
    free(k->ref);
    free(k->lse);
}

static bool sampled_rows_alloc(sampled_rows *k, const bench_shape *s, sample_size size) {
    int all = s->s_q * s->heads;
    k->sequences = s->batch < size.sequences ? s->batch : size.sequences;
    k->rows = (size.rows + k->sequences - 1) / k->sequences;
    k->rows = k->rows < all ? k->rows : all;
    size_t n = (size_t)k->sequences * (size_t)k->rows;
    k->order = malloc((size_t)s->batch * sizeof *k->order);
    k->row = malloc(n * sizeof *k->row);
    k->ref = malloc(n * (size_t)s->d_c * sizeof *k->ref);
    k->lse = malloc(n * sizeof *k->lse);
    return k->order && k->row && k->ref && k->lse;
}

/* Chooses sequences, and in each of them rows at about equal distances, beginning with a random
 * row, so that the rows are spread over query tokens and heads. */
static void pick_rows(sampled_rows *k, const bench_shape *s, uint64_t seed) {
    int all = s->s_q * s->heads;
    rng r = rng_make(seed, rng_stream_of("verify rows"));
    pick_sequences(k->order, s->batch, k->sequences, seed);
    for (int i = 0; i < k->sequences; i++) {
        int start = (int)rng_below(&r, (uint32_t)all);
        for (int j = 0; j < k->rows; j++)
            k->row[i * k->rows + j] =
                (int64_t)k->order[i] * all + (start + (int64_t)j * all / k->rows) % all;
    }
}

static snap_status judge_sampled(judge_error *e, const bench_output *o, const bench_arm *arm,
                                 const lab_step *step, sampled_rows *k, snap_err *err) {
    const bench_shape *s = bench_arm_shape(arm);
    int rows = k->sequences * k->rows;
    snap_status st = lab_attend(bench_arm_backend(arm), step, k->row, rows, k->ref, k->lse, err);
    if (st == SNAP_OK)
        *e = judge_known_rows(&(judge_known){.heads = s->heads,
                                             .s_q = s->s_q,
                                             .d_c = s->d_c,
                                             .out = o->out,
                                             .lse = o->lse,
                                             .row = k->row,
                                             .rows = rows,
                                             .ref = k->ref,
                                             .ref_lse = k->lse});
    return st;
}

/* A backend with lab_attend() can flush its caches, so the arm has one set: set 0. */
static snap_status judge_on_device(judge_error *e, const bench_arm *arm, const bench_output *o,
                                   sample_size size, judge_bound bound, uint64_t seed,
                                   snap_err *err) {
    const bench_shape *s = bench_arm_shape(arm);
    const numbers *from = bench_arm_numbers(arm);
    lab_step step = {.precision = bench_arm_precision(arm),
                     .heads = s->heads,
                     .s_q = s->s_q,
                     .context = s->context,
                     .softmax_scale = bench_softmax_scale(),
                     .tokens = numbers_tokens(from),
                     .queries = numbers_queries(from),
                     .bf16_queries = bench_kind_plain_queries(bench_arm_kind(arm))};
    mla_backend_info info;
    mla_backend_describe(bench_arm_backend(arm), &info);
    sampled_rows k = {0};
    snap_status st = SNAP_OK;
    step.queries.seed = o->query_seed;
    if (!sampled_rows_alloc(&k, s, size))
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for checking %d sequences", s->batch));
    pick_rows(&k, s, seed);
    TRY(judge_sampled(e, o, arm, &step, &k, err));
    if (e->lse_err > bound.lse_err && info.fp8_sums.bits && step.precision == MLA_FP8) {
        judge_error alike;
        step.sums = info.fp8_sums;
        TRY(judge_sampled(&alike, o, arm, &step, &k, err));
        if (!alike.nonfinite)
            e->lse_alike = fmin(alike.lse_err, e->lse_err);
    }
cleanup:
    sampled_rows_release(&k);
    return st;
}

static snap_status judge_output(judge_error *e, const bench_arm *arm, const bench_output *o,
                                sample_size size, judge_bound bound, packed_references *known,
                                uint64_t seed, snap_err *err) {
    /* lab_attend() takes only sequences of equal length, and no cache formats of arms. */
    bool device = lab_can_attend(bench_arm_backend(arm)) && !bench_arm_shape(arm)->lengths &&
                  !bench_arm_format(arm);
    if (device && (!is_small(arm, kHostWork) || bench_kind_plain_queries(bench_arm_kind(arm))))
        return judge_on_device(e, arm, o, size, bound, seed, err);
    return judge_on_host(e, arm, o, size, known, seed, err);
}

/* ---- before a cell is timed ---- */

/* Runs one step on set 0 with its first input, and copies the output. */
static snap_status first_step(bench_arm *arm, bench_scope scope, bench_output *o, snap_err *err) {
    double ns;
    snap_status st = SNAP_OK;
    TRY(bench_arm_reset(arm, err));
    TRY(bench_arm_step(arm, scope, &ns, err));
    TRY(bench_arm_output(arm, o, err));
cleanup:
    return st;
}

static bool same(const bench_arm *arm, const bench_output *a, const bench_output *b) {
    size_t rows = (size_t)bench_arm_rows(arm), d_c = (size_t)bench_arm_shape(arm)->d_c;
    return a->out && memcmp(a->out, b->out, rows * d_c * sizeof *a->out) == 0 &&
           (!bench_arm_has_lse(arm) || memcmp(a->lse, b->lse, rows * sizeof *a->lse) == 0);
}

snap_status verify_arm(verified *v, bench_arm *arm, bench_scope scope, packed_references *known,
                       uint64_t seed, snap_err *err) {
    bench_output o = {0};
    snap_status st = SNAP_OK;
    TRY(first_step(arm, scope, &o, err));
    if (v->verdict == SNAP_OK && same(arm, &v->checked, &o))
        goto cleanup;
    verified_release(v);
    v->checked = o;
    o = (bench_output){0};
    v->bound = bound_of(arm);
    TRY(judge_output(&v->error, arm, &v->checked, kBefore, v->bound, known, seed, err));
    v->bound = judge_bound_rows(v->bound, v->error.rows);
    v->verdict = judge_verdict(&v->error, v->bound, &v->why);
cleanup:
    bench_output_release(&o);
    return st;
}

/* ---- checks after the timing ---- */

/* Checks rows of a timed step's output: of the one that bench_arm_sample() kept, or else of the
 * last step. */
static snap_status check_timed(verified *v, bench_arm *arm, packed_references *known, uint64_t seed,
                               snap_err *err) {
    bench_output last = {0};
    const bench_output *o = bench_arm_kept(arm);
    bool quick = lab_can_attend(bench_arm_backend(arm)) && !bench_arm_format(arm);
    sample_size size = quick ? kBefore : kTimed;
    judge_bound bound = bound_of(arm);
    judge_error e = {0};
    snap_status st = SNAP_OK;
    if (!o)
        TRY(bench_arm_output(arm, &last, err));
    TRY(judge_output(&e, arm, o ? o : &last, size, bound, known, seed + 1, err));
    v->verdict = judge_verdict(&e, judge_bound_rows(bound, e.rows), &v->why);
    if (v->verdict != SNAP_OK)
        err_prefix(&v->why, "the output of a timed step");
cleanup:
    bench_output_release(&last);
    return st;
}

static snap_status check_same(verified *v, bench_arm *arm, bench_scope scope, snap_err *err) {
    bench_output o = {0};
    snap_status st = first_step(arm, scope, &o, err);
    if (st == SNAP_OK && !same(arm, &v->checked, &o))
        v->verdict =
            err_set(&v->why, SNAP_E_WRONG,
                    "the input that was checked before timing has another output after it");
    bench_output_release(&o);
    return st;
}

/* The largest error of an element of a planted row, in tokens, divided by the larger of 1 and the
 * number of tokens in its column. FP8 may round all probabilities by the same factor, which is
 * divided out: it is returned in *factor. */
static double row_error(const uint16_t *out, const double *want, int d_c, int64_t n,
                        double *factor) {
    double worst = 0, sum = 0, all = 0;
    for (int d = 0; d < d_c; d++) {
        sum += (double)bf16_to_f32(out[d]);
        all += want[d];
    }
    *factor = sum * (double)n / all;
    for (int d = 0; d < d_c; d++) {
        double tokens = (double)bf16_to_f32(out[d]) / sum * all;
        double e = fabs(tokens - want[d]) / fmax(1, want[d]);
        if (!(e <= worst)) /* also true for NaN */
            worst = e;
        if (isnan(e))
            break;
    }
    return worst;
}

static void judge_planted(verified *v, const bench_arm *arm, const bench_output *o,
                          double *tokens) {
    const bench_shape *s = bench_arm_shape(arm);
    int each = s->s_q * s->heads;
    bool has_lse = bench_arm_has_lse(arm);
    for (int b = 0; b < s->batch && v->verdict == SNAP_OK; b++) {
        double want, factor;
        int64_t n = bench_arm_planted(arm, b, tokens, &want);
        for (int i = 0; n && i < each && v->verdict == SNAP_OK; i++) {
            int64_t row = (int64_t)b * each + i;
            double e = row_error(o->out + row * s->d_c, tokens, s->d_c, n, &factor);
            double lse = has_lse ? fabs((double)o->lse[row] - want) / fmax(1, want) : 0;
            if (!(e <= kPlantedError && fabs(factor - 1) <= v->bound.row_rel &&
                  lse <= v->bound.lse_err))
                v->verdict = err_set(
                    &v->why, SNAP_E_WRONG,
                    "tokens planted in each page after timing: sequence %d, query %d, head %d "
                    "miscounts them by %.2g (at most %.2g), their sum is %.4g, the error of lse "
                    "%.2g",
                    b, i / s->heads, i % s->heads, e, kPlantedError, factor, lse);
        }
    }
}

static snap_status check_planted(verified *v, bench_arm *arm, bench_scope scope, uint64_t seed,
                                 snap_err *err) {
    double *tokens = malloc((size_t)bench_arm_shape(arm)->d_c * sizeof *tokens);
    bench_output o = {0};
    double ns;
    snap_status st = SNAP_OK;
    if (!tokens) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a row");
        goto cleanup;
    }
    TRY(bench_arm_plant(arm, seed, err));
    TRY(bench_arm_step(arm, scope, &ns, err));
    TRY(bench_arm_output(arm, &o, err));
    judge_planted(v, arm, &o, tokens);
cleanup:
    bench_output_release(&o);
    free(tokens);
    return st;
}

snap_status verify_timed(verified *v, bench_arm *arm, bench_scope scope, packed_references *known,
                         uint64_t seed, snap_err *err) {
    snap_status st = check_timed(v, arm, known, seed, err);
    if (st == SNAP_OK)
        st = bench_arm_check(arm, err);
    if (st == SNAP_OK && v->verdict == SNAP_OK)
        st = check_same(v, arm, scope, err);
    if (st == SNAP_OK && v->verdict == SNAP_OK)
        st = check_planted(v, arm, scope, seed, err);
    return st;
}
