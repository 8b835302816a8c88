#include "harness/bench/fidelity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/text.h"
#include "harness/bench/bench_arm.h"
#include "harness/bench/oracle.h"
#include "kernels/formats.h"

/* ---- options ---- */

static snap_status add_format(void *ctx, const char *part, snap_err *err) {
    fidelity_options *opt = ctx;
    cache_format *f = &opt->format[opt->n_format];
    if (opt->n_format == FIDELITY_FORMATS)
        return err_set(err, SNAP_E_USAGE, "--formats lists more than %d formats", FIDELITY_FORMATS);
    const coded_format *coded = coded_format_find(part);
    snap_status st = cache_format_load(f, coded ? "bf16" : part, opt->d_c, opt->d_r, err);
    if (st != SNAP_OK) {
        err_prefix(err, "--formats");
        return st;
    }
    if (coded)
        (void)snprintf(f->name, sizeof f->name, "%s", coded->name);
    opt->coded[opt->n_format] = coded;
    for (int i = 0; i < opt->n_format; i++)
        if (strcmp(f->name, opt->format[i].name) == 0)
            return err_set(err, SNAP_E_USAGE, "--formats lists two formats with the name '%s'",
                           f->name);
    opt->n_format++;
    return SNAP_OK;
}

static snap_status add_distribution(void *ctx, const char *part, snap_err *err) {
    fidelity_options *opt = ctx;
    numbers_kind kind = NUMBERS_NORMAL;
    snap_status st = numbers_kind_parse(part, &kind, err);
    if (st == SNAP_OK)
        opt->distribution[kind] = true;
    return st;
}

snap_status fidelity_parse(fidelity_options *opt, const char *formats, const char *distributions,
                           const char *contexts, snap_err *err) {
    snap_status st = SNAP_OK;
    opt->format = calloc(FIDELITY_FORMATS, sizeof *opt->format);
    if (!opt->format)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the formats");
    TRY(text_split(formats, ',', "--formats", add_format, opt, err));
    TRY(text_split(distributions, ',', "--distribution", add_distribution, opt, err));
    TRY(bench_parse_list(contexts, "--contexts", 1, MLA_MAX_CONTEXT, opt->context, GRID_AXIS,
                         &opt->n_context, err));
cleanup:
    return st;
}

void fidelity_release(fidelity_options *opt) {
    free(opt->format);
    opt->format = NULL;
    opt->n_format = 0;
}

static int count_on(const bool *on, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += on[i];
    return sum;
}

/* True if the backend has an arm that reads the format: only bf16 and snapmla. */
static bool has_arm(const fidelity_options *opt, const cache_format *f, bench_kind *kind) {
    *kind = strcmp(f->name, "bf16") == 0 ? (bench_kind)MLA_BF16 : (bench_kind)MLA_FP8;
    return opt->backend && (*kind == (bench_kind)MLA_BF16 || strcmp(f->name, "snapmla") == 0);
}

int fidelity_count(const fidelity_options *opt) {
    int per_problem = opt->n_format;
    bench_kind kind;
    for (int i = 0; i < opt->n_format; i++)
        per_problem += has_arm(opt, &opt->format[i], &kind);
    return opt->n_context * count_on(opt->distribution, NUMBERS_KINDS) * per_problem;
}

/* ---- one problem: a distribution and a context ---- */

typedef struct {
    const fidelity_options *opt;
    numbers_kind kind;
    int64_t context;
    numbers from;
    float *q, *kv;  /* [heads] and [context] rows of d_c + d_r numbers */
    float *rounded; /* memory for another copy of @kv */
    oracle_result truth, now;
    parallel *pool;
} problem;

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

/* The input of the oracle. */
static oracle_step step_of(const problem *p) {
    return (oracle_step){.pool = p->pool,
                         .q = p->q,
                         .kv = p->kv,
                         .heads = p->opt->heads,
                         .d_c = p->opt->d_c,
                         .d_r = p->opt->d_r,
                         .context = p->context,
                         .softmax_scale = (double)bench_softmax_scale()};
}

/* ---- a backend's arm ---- */

static snap_status run_backend(const problem *p, bench_kind kind, const oracle_result *into,
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
    bench_output o = {0};
    double ns;
    snap_status st = SNAP_OK;
    TRY(bench_arm_create(&arm, opt->backend, &shape, kind, NULL, &p->from, 1, false, err));
    TRY(bench_arm_step(arm, BENCH_SERVED, &ns, err));
    TRY(bench_arm_output(arm, &o, err));
    for (size_t i = 0; i < n; i++)
        into->o[i] = (double)bf16_to_f32(o.out[i]);
    for (size_t i = 0; i < rows; i++)
        into->lse[i] = (double)o.lse[i];
cleanup:
    bench_arm_free(arm);
    bench_output_release(&o);
    return st;
}

/* ---- rows ---- */

static double token_bytes(const fidelity_options *opt, int format) {
    const coded_format *coded = opt->coded[format];
    return coded ? coded_token_bytes(coded, opt->d_c, opt->d_r)
                 : cache_format_token_bytes(&opt->format[format]);
}

static snap_status emit_row(const problem *p, int format, const char *source, fidelity_emit emit,
                            void *ctx, snap_err *err) {
    oracle_errors e = oracle_compare(&p->now, &p->truth, p->opt->heads, p->opt->d_c);
    const fidelity_record r = {.kind = "kernel",
                               .config = p->opt->format[format].name,
                               .source = source,
                               .distribution = numbers_kind_name(p->kind),
                               .context = p->context,
                               .heads = p->opt->heads,
                               .bytes_per_token = token_bytes(p->opt, format),
                               .seed = (int64_t)p->opt->seed,
                               .rmse = e.rmse,
                               .cosine_diff = e.cosine_diff,
                               .rel_l2 = e.rel_l2,
                               .max_abs = e.max_abs,
                               .lse_error = e.lse_error,
                               .rows = p->opt->heads,
                               .origin = "measured"};
    return emit(ctx, &r, err);
}

static snap_status check_cancel(const fidelity_options *opt, snap_err *err) {
    if (opt->cancel && *opt->cancel)
        return err_set(err, SNAP_E_CANCELLED, "stopped by a signal");
    return SNAP_OK;
}

/* The FP64 oracle of one format. */
static snap_status run_oracle(problem *p, int format, snap_err *err) {
    const coded_format *coded = p->opt->coded[format];
    oracle_step step = step_of(p);
    int width = p->opt->d_c + p->opt->d_r;
    if (coded) {
        memcpy(p->rounded, p->kv, (size_t)(p->context * width) * sizeof *p->kv);
        coded_round_rows(coded, p->rounded, p->context, width, p->opt->d_c);
        step.kv = p->rounded;
    }
    return oracle_attend(&step, &p->opt->format[format], &p->now, err);
}

static snap_status run_configs(problem *p, fidelity_emit emit, void *ctx, snap_err *err) {
    const fidelity_options *opt = p->opt;
    snap_status st = SNAP_OK;
    bench_kind kind;
    for (int i = 0; i < opt->n_format; i++) {
        TRY(check_cancel(opt, err));
        TRY(run_oracle(p, i, err));
        TRY(emit_row(p, i, "reference", emit, ctx, err));
    }
    for (int i = 0; i < opt->n_format; i++)
        if (has_arm(opt, &opt->format[i], &kind)) {
            mla_backend_info info;
            mla_backend_describe(opt->backend, &info);
            TRY(run_backend(p, kind, &p->now, err));
            TRY(emit_row(p, i, info.name, emit, ctx, err));
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
    p->rounded = malloc((size_t)(p->context * (opt->d_c + opt->d_r)) * sizeof *p->rounded);
    if (!p->rounded)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for %lld tokens", (long long)p->context));
    TRY(oracle_result_init(&p->truth, opt->heads, opt->d_c, err));
    TRY(oracle_result_init(&p->now, opt->heads, opt->d_c, err));
    oracle_step step = step_of(p);
    TRY(oracle_exact(&step, &p->truth, err));
    TRY(run_configs(p, emit, ctx, err));
cleanup:
    numbers_release(&p->from);
    free(p->q);
    free(p->kv);
    free(p->rounded);
    oracle_result_release(&p->truth);
    oracle_result_release(&p->now);
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
