#include "harness/bench/fidelity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/text.h"
#include "harness/bench/arm.h"
#include "kernels/formats.h"
#include "kernels/reference.h"

typedef struct {
    const char *name;
    ref_format format;
    ref_pv pv;
} config;

static const config configs[FIDELITY_CONFIGS] = {
    {"bf16", REF_BF16, REF_P_BF16},    {"snapmla", REF_SNAPMLA, REF_P_E4M3},
    {"A", REF_A, REF_P_E4M3},          {"B", REF_B, REF_P_E4M3},
    {"C", REF_C, REF_P_E4M3},          {"D", REF_D, REF_P_E4M3},
    {"E", REF_E, REF_P_E4M3},          {"F", REF_F, REF_P_E4M3},
    {"noPV", REF_SNAPMLA, REF_P_BF16},
};

/* ---- options ---- */

static snap_status add_config(void *ctx, const char *part, snap_err *err) {
    fidelity_options *opt = ctx;
    for (int i = 0; i < FIDELITY_CONFIGS; i++)
        if (strcmp(part, configs[i].name) == 0) {
            opt->config[i] = true;
            return SNAP_OK;
        }
    return err_set(err, SNAP_E_USAGE,
                   "--configs must list some of bf16,snapmla,A,B,C,D,E,F,noPV, got '%s'", part);
}

static snap_status add_distribution(void *ctx, const char *part, snap_err *err) {
    fidelity_options *opt = ctx;
    numbers_kind kind = NUMBERS_NORMAL;
    snap_status st = numbers_kind_parse(part, &kind, err);
    if (st == SNAP_OK)
        opt->distribution[kind] = true;
    return st;
}

snap_status fidelity_parse(fidelity_options *opt, const char *config_list,
                           const char *distributions, const char *contexts, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(text_split(config_list, ',', "--configs", add_config, opt, err));
    TRY(text_split(distributions, ',', "--distribution", add_distribution, opt, err));
    TRY(bench_parse_list(contexts, "--contexts", 1, MLA_MAX_CONTEXT, opt->context, GRID_AXIS,
                         &opt->n_context, err));
cleanup:
    return st;
}

static int count_on(const bool *on, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += on[i];
    return sum;
}

/* The configs that a backend's arms are: the first two of the table. */
static int backend_configs(const fidelity_options *opt) {
    return opt->backend ? opt->config[MLA_BF16] + opt->config[MLA_FP8] : 0;
}

int fidelity_count(const fidelity_options *opt) {
    int per_problem = count_on(opt->config, FIDELITY_CONFIGS) + backend_configs(opt);
    return opt->n_context * count_on(opt->distribution, NUMBERS_KINDS) * per_problem;
}

/* ---- one problem: a distribution and a context ---- */

typedef struct {
    double *o;   /* [heads][d_c] */
    double *lse; /* [heads] */
} result;

typedef struct {
    const fidelity_options *opt;
    numbers_kind kind;
    int64_t context;
    numbers from;
    float *q, *kv; /* [heads], [context] rows of d_c + d_r */
    result truth, now;
    parallel *pool;
} problem;

static snap_status result_alloc(result *r, const fidelity_options *opt, snap_err *err) {
    size_t heads = (size_t)opt->heads;
    r->o = calloc(heads * (size_t)opt->d_c, sizeof *r->o);
    r->lse = calloc(heads, sizeof *r->lse);
    return r->o && r->lse ? SNAP_OK
                          : err_set(err, SNAP_E_NOMEM, "out of memory for %zu rows", heads);
}

static void result_free(result *r) {
    free(r->o);
    free(r->lse);
}

typedef void (*row_fn)(const numbers *n, uint64_t index, uint16_t *row);

static snap_status draw(float **out, const numbers *from, row_fn make, int64_t rows,
                        snap_err *err) {
    int64_t width = from->d_c + from->d_r;
    uint16_t row[MLA_MAX_CONTENT + MLA_MAX_ROPE];
    *out = malloc((size_t)(rows * width) * sizeof **out);
    if (!*out)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %lld tokens", (long long)rows);
    for (int64_t i = 0; i < rows; i++) {
        make(from, (uint64_t)i, row);
        for (int64_t d = 0; d < width; d++)
            (*out)[i * width + d] = bf16_to_f32(row[d]);
    }
    return SNAP_OK;
}

/* ---- the oracle in one format, a head an item of work ---- */

typedef struct {
    const problem *p;
    const ref_rows *q, *k;
    ref_pv pv;
    const result *into;
} attend_job;

static void attend_head(void *ctx, int worker, int64_t head) {
    const attend_job *job = ctx;
    (void)worker;
    ref_attend(job->q, head, job->k, job->p->context, (double)bench_softmax_scale(), job->pv,
               job->into->o + head * job->p->opt->d_c, job->into->lse + head);
}

static snap_status attend(const problem *p, ref_format format, ref_pv pv, const result *into,
                          snap_err *err) {
    const fidelity_options *opt = p->opt;
    ref_rows q = {0}, k = {0};
    snap_status st = SNAP_OK;
    TRY(ref_rows_quantise(&q, format, p->q, opt->heads, opt->d_c, opt->d_r, err));
    TRY(ref_rows_quantise(&k, format, p->kv, p->context, opt->d_c, opt->d_r, err));
    attend_job job = {.p = p, .q = &q, .k = &k, .pv = pv, .into = into};
    parallel_for(p->pool, opt->heads, attend_head, &job);
cleanup:
    ref_rows_release(&q);
    ref_rows_release(&k);
    return st;
}

/* ---- a backend's arm ---- */

static snap_status run_backend(const problem *p, bench_kind kind, const result *into,
                               snap_err *err) {
    const fidelity_options *opt = p->opt;
    bench_shape shape = {.heads = opt->heads,
                         .s_q = 1,
                         .batch = 1,
                         .context = p->context,
                         .d_c = opt->d_c,
                         .d_r = opt->d_r};
    size_t rows = (size_t)opt->heads, n = rows * (size_t)opt->d_c;
    bench_arm *arm = NULL;
    uint16_t *out = malloc(n * sizeof *out);
    float *lse = malloc(rows * sizeof *lse);
    double ns;
    snap_status st = SNAP_OK;
    if (!out || !lse) {
        st = err_set(err, SNAP_E_NOMEM, "out of memory for %zu rows", rows);
        goto cleanup;
    }
    TRY(bench_arm_create(&arm, opt->backend, &shape, kind, &p->from, 1, false, err));
    TRY(bench_arm_step(arm, BENCH_SERVED, &ns, err));
    TRY(bench_arm_result(arm, out, lse, err));
    for (size_t i = 0; i < n; i++)
        into->o[i] = (double)bf16_to_f32(out[i]);
    for (size_t i = 0; i < rows; i++)
        into->lse[i] = (double)lse[i];
cleanup:
    bench_arm_free(arm);
    free(out);
    free(lse);
    return st;
}

/* ---- rows ---- */

typedef struct {
    double diff2, ref2, out2, dot, max_abs, lse_error;
} errors;

/* The larger one, and NaN if either is: an error that is no number must not hide. */
static double worse(double a, double b) {
    return isnan(a) || a > b ? a : b;
}

static errors compare(const problem *p) {
    errors e = {0};
    int64_t n = (int64_t)p->opt->heads * p->opt->d_c;
    for (int64_t i = 0; i < n; i++) {
        double x = p->now.o[i], ref = p->truth.o[i];
        e.diff2 += (x - ref) * (x - ref);
        e.ref2 += ref * ref;
        e.out2 += x * x;
        e.dot += x * ref;
        e.max_abs = worse(e.max_abs, fabs(x - ref));
    }
    for (int h = 0; h < p->opt->heads; h++) {
        double ref = p->truth.lse[h];
        e.lse_error = worse(e.lse_error, fabs(p->now.lse[h] - ref) / fmax(1.0, fabs(ref)));
    }
    return e;
}

static js *row_of(const problem *p, const char *name, const char *source) {
    errors e = compare(p);
    double n = (double)p->opt->heads * p->opt->d_c;
    js *row = js_new_object();
    bool ok = row && js_set_str(row, "kind", "kernel") && js_set_str(row, "config", name) &&
              js_set_str(row, "source", source) &&
              js_set_str(row, "distribution", numbers_kind_name(p->kind)) &&
              js_set_int(row, "context", p->context) && js_set_int(row, "heads", p->opt->heads) &&
              js_set_int(row, "seed", (int64_t)p->opt->seed) &&
              js_set_num(row, "rmse", sqrt(e.diff2 / n)) &&
              js_set_num(row, "cosine_diff", 1.0 - e.dot / sqrt(e.ref2 * e.out2)) &&
              js_set_num(row, "rel_l2", sqrt(e.diff2 / e.ref2)) &&
              js_set_num(row, "lse_error", e.lse_error) && js_set_num(row, "max_abs", e.max_abs) &&
              js_set_int(row, "rows", p->opt->heads) && js_set_str(row, "origin", "measured");
    if (ok)
        return row;
    js_free(row);
    return NULL;
}

static snap_status emit_row(const problem *p, const char *name, const char *source,
                            fidelity_emit emit, void *ctx, snap_err *err) {
    js *row = row_of(p, name, source);
    if (!row)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a row");
    return emit(ctx, row, err);
}

static snap_status check_cancel(const fidelity_options *opt, snap_err *err) {
    if (opt->cancel && *opt->cancel)
        return err_set(err, SNAP_E_CANCELLED, "stopped by a signal");
    return SNAP_OK;
}

static snap_status run_configs(problem *p, fidelity_emit emit, void *ctx, snap_err *err) {
    const fidelity_options *opt = p->opt;
    snap_status st = SNAP_OK;
    for (int i = 0; i < FIDELITY_CONFIGS; i++)
        if (opt->config[i]) {
            TRY(check_cancel(opt, err));
            TRY(attend(p, configs[i].format, configs[i].pv, &p->now, err));
            TRY(emit_row(p, configs[i].name, "reference", emit, ctx, err));
        }
    for (int i = MLA_BF16; i <= MLA_FP8 && opt->backend; i++)
        if (opt->config[i]) {
            mla_backend_info info;
            mla_backend_describe(opt->backend, &info);
            TRY(run_backend(p, (bench_kind)i, &p->now, err));
            TRY(emit_row(p, configs[i].name, info.name, emit, ctx, err));
        }
cleanup:
    return st;
}

static snap_status run_problem(problem *p, fidelity_emit emit, void *ctx, snap_err *err) {
    const fidelity_options *opt = p->opt;
    snap_status st = SNAP_OK;
    TRY(numbers_create(&p->from, p->kind, opt->d_c, opt->d_r, opt->seed, err));
    if (opt->backend)
        TRY(numbers_upload(&p->from, opt->backend, err));
    TRY(draw(&p->q, &p->from, numbers_query, opt->heads, err));
    TRY(draw(&p->kv, &p->from, numbers_token, p->context, err));
    TRY(result_alloc(&p->truth, opt, err));
    TRY(result_alloc(&p->now, opt, err));
    TRY(attend(p, REF_PLAIN, REF_P_EXACT, &p->truth, err));
    TRY(run_configs(p, emit, ctx, err));
cleanup:
    numbers_release(&p->from);
    free(p->q);
    free(p->kv);
    result_free(&p->truth);
    result_free(&p->now);
    return st;
}

snap_status fidelity_run(const fidelity_options *opt, fidelity_emit emit, void *ctx,
                         snap_err *err) {
    parallel *pool;
    snap_status st = parallel_create(&pool, opt->threads, err);
    for (int k = 0; k < NUMBERS_KINDS && st == SNAP_OK; k++)
        for (int i = 0; i < opt->n_context && opt->distribution[k] && st == SNAP_OK; i++) {
            problem p = {
                .opt = opt, .kind = (numbers_kind)k, .context = opt->context[i], .pool = pool};
            st = run_problem(&p, emit, ctx, err);
        }
    parallel_free(pool);
    return st;
}
