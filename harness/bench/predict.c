#include "harness/bench/predict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "harness/bench/e2e.h"
#include "harness/bench/predict_request.h"
#include "harness/measure/stats.h"
#include "harness/record/device_results.h"
#include "harness/record/provenance.h"
#include "harness/record/results.h"

static const char *const kParts[STEP_PARTS] = {"attention", "exchange", "experts", "rest"};

/* ---- one row ---- */

static const char *keep(predict_request *q, const char *text) {
    size_t n = strlen(text) + 1;
    char *copy = arena_alloc(&q->out->mem, n, 1);
    if (copy)
        memcpy(copy, text, n);
    return copy;
}

/* The errors of the parts are added up, and then that of the step as a sum of its parts. */
static void set_interval(prediction_record *r, const rule_book *book, const predict_work *w,
                         const double ns[STEP_PARTS], const predict_time *exchange) {
    double sum = r->waiting_ns, low = exchange->low_ns, high = exchange->high_ns + 2 * sum,
           step = book->range[predict_range(w->rows)].sum_error;
    for (int p = 0; p < STEP_PARTS; p++) {
        double rows = p == STEP_EXPERTS ? w->expert_rows : w->rows,
               error = book->range[predict_range(rows)].error[p];
        sum += ns[p];
        low += p == STEP_EXCHANGE ? 0 : ns[p] * fmax(0, 1 - error);
        high += p == STEP_EXCHANGE ? 0 : ns[p] * (1 + error);
    }
    r->interval_ns[0] = r->median_ns * low / sum * fmax(0, 1 - step);
    r->interval_ns[1] = r->median_ns * high / sum * (1 + step);
    r->tokens_s_interval[0] = (double)r->batch / r->interval_ns[1] * 1e9;
    r->tokens_s_interval[1] = (double)r->batch / r->interval_ns[0] * 1e9;
}

static void set_parts(prediction_record *r, const double ns[STEP_PARTS]) {
    int most = 0;
    for (int p = 1; p < STEP_PARTS; p++)
        most = ns[p] > ns[most] ? p : most;
    r->attention_ns = ns[STEP_ATTENTION];
    r->exchange_ns = ns[STEP_EXCHANGE];
    r->experts_ns = ns[STEP_EXPERTS];
    r->rest_ns = ns[STEP_REST];
    r->limit = kParts[most];
}

/* The time of a step in which the first replica, which has the most sequences, has @rows. */
static snap_status set_times(const predict_request *q, const rule_book *book,
                             const predict_layout *l, kv_format arm, int64_t rows,
                             prediction_record *r, snap_err *err) {
    double ns[STEP_PARTS];
    predict_time exchange;
    predict_work w = predict_work_of(&q->shape, l, q->e4m3, (double)rows, r->context, (double)NAN);
    snap_status st = predict_links_time(&q->out->in.links, &w, l, &exchange, err);
    if (st != SNAP_OK)
        return st;
    ns[STEP_EXCHANGE] = exchange.ns;
    rules_apply(book, arm, &w, ns);
    r->parts |= PREDICTION_FITS;
    r->waiting_ns = rules_waiting(book, &w);
    r->median_ns =
        rules_step(book, &w, ns, l->ranks.parts > 1 || l->ranks.whole_experts) + r->waiting_ns;
    r->tokens_s = (double)r->batch / r->median_ns * 1e9;
    set_parts(r, ns);
    set_interval(r, book, &w, ns, &exchange);
    if (isfinite(r->median_ns))
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE, "--measured: no steps of the arm %s", kv_format_name(arm));
}

typedef struct {
    predict_layout layout;
    kv_format arm;
    int64_t context, batch; /* batch 0: as many as fit */
} cell;

static snap_status predict_cell(predict_request *q, const rule_book *book, const cell *c,
                                prediction_record *r, snap_err *err) {
    const predict_layout *l = &c->layout;
    const predict_links *links = &q->out->in.links;
    char layout[32];
    int64_t memory = (int64_t)(q->o->memory_gb * 1e9), replicas = l->ranks.replicas,
            rows = c->batch ? rank_layout_share(&l->ranks, 0, c->batch)
                            : predict_largest(&q->shape, l, q->e4m3, c->arm, c->context, memory,
                                              E2E_MOST_BATCH);
    predict_memory m =
        predict_memory_of(&q->shape, l, q->e4m3, c->arm, rows ? rows : 1, c->context);
    bool fits = rows && (memory == 0 || predict_memory_sum(&m) <= memory);
    if (l->ranks.whole_experts && c->batch && c->batch < replicas)
        return err_set(err, SNAP_E_USAGE,
                       "--batch %lld is too small: each of %d replicas needs a sequence",
                       (long long)c->batch, l->ranks.replicas);
    predict_layout_text(l, layout);
    record_init(&prediction_type, r);
    r->origin = "predicted";
    r->model_config = keep(q, q->model);
    r->layout = keep(q, layout);
    r->gpus = predict_gpus(l);
    r->weights = q->e4m3 ? "e4m3" : "bf16";
    r->link = links->has_link ? links->link.name : "measured";
    r->network = r->gpus > PREDICT_NODE && l->ranks.whole_experts ? links->network.name : "";
    r->exchange = links->all_to_all ? "all_to_all" : "";
    r->arm = kv_format_name(c->arm);
    r->context = c->context;
    r->largest = c->batch == 0;
    r->weight_bytes = m.weights;
    r->buffer_bytes = m.buffers;
    r->cache_bytes = m.cache;
    r->batch = !fits ? 0 : c->batch ? c->batch : rows * replicas;
    if (!r->layout || !r->model_config)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a prediction");
    return fits ? set_times(q, book, l, c->arm, rows, r, err) : SNAP_OK;
}

/* NULL after a failure, which @err then has. */
static prediction_record *next_row(predict_result *p, snap_err *err) {
    if (p->n < PREDICT_MOST)
        return &p->rows[p->n++];
    (void)err_set(err, SNAP_E_USAGE, "more than %d rows", PREDICT_MOST);
    return NULL;
}

/* ---- rows of the options ---- */

static snap_status predict_layouts(predict_request *q, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int l = 0; l < q->n_layouts; l++)
        for (int a = 0; a < q->n_arms; a++)
            for (int i = 0; i < q->n_contexts; i++)
                for (int j = 0; j < q->n_batches; j++) {
                    cell c = {q->layouts[l], q->arms[a], q->contexts[i], q->batches[j]};
                    prediction_record *r = next_row(q->out, err);
                    if (!r)
                        return SNAP_E_USAGE;
                    TRY(predict_cell(q, &q->out->in.book, &c, r, err));
                }
cleanup:
    return st;
}

/* The layouts of a cell of the map that were compared so far. */
typedef struct {
    prediction_record at[2 * PREDICT_WIDEST]; /* rows that fit; TP of 1 to PREDICT_WIDEST, with and
                                                 without EP */
    int n;
    bool divides;           /* some layout divides the model */
    bool any;               /* some layout has a sequence for each replica */
    prediction_record none; /* if no layout fits: the row of the first one, without a time */
} candidates;

static snap_status predict_candidates(predict_request *q, int64_t gpus, cell *c, candidates *out,
                                      snap_err *err) {
    snap_status st = SNAP_OK;
    for (int parts = 1; parts <= PREDICT_WIDEST && parts <= gpus; parts++)
        for (int whole = 0; whole < (gpus > 1 ? 2 : 1); whole++) {
            prediction_record r;
            c->layout = (predict_layout){{(int)gpus / parts, parts, whole}};
            if (gpus % parts != 0 || predict_layout_check(&c->layout, &q->shape, NULL) != SNAP_OK)
                continue;
            out->divides = true;
            if (c->batch && c->batch < gpus / parts)
                continue;
            TRY(predict_cell(q, &q->out->in.book, c, &r, err));
            if (r.batch)
                out->at[out->n++] = r;
            else if (!out->any)
                out->none = r;
            out->any = true;
        }
cleanup:
    return st;
}

static int by_tokens_s(const void *a, const void *b) {
    double x = ((const prediction_record *)a)->tokens_s,
           y = ((const prediction_record *)b)->tokens_s;
    return (x < y) - (x > y);
}

/* The fastest candidate, with the second fastest one and the number of ties. */
static prediction_record best_of(candidates *c) {
    if (!c->n)
        return c->none;
    qsort(c->at, (size_t)c->n, sizeof c->at[0], by_tokens_s);
    prediction_record best = c->at[0];
    best.best = true;
    best.tied = 0;
    for (int i = 1; i < c->n; i++)
        best.tied += c->at[i].tokens_s_interval[1] >= best.tokens_s_interval[0];
    if (c->n < 2)
        return best;
    best.runner_up = c->at[1].layout;
    best.runner_up_tokens_s = c->at[1].tokens_s;
    memcpy(best.runner_up_interval, c->at[1].tokens_s_interval, sizeof best.runner_up_interval);
    return best;
}

/* Adds a row with the fastest layout of @gpus GPUs for a cell. Layouts with idle replicas are left
 * out. If all layouts have idle replicas, no row is added. If no other layout fits into the memory,
 * the row has no time. */
static snap_status predict_best(predict_request *q, int64_t gpus, cell *c, snap_err *err) {
    candidates all = {.n = 0};
    snap_status st = predict_candidates(q, gpus, c, &all, err);
    if (st != SNAP_OK)
        return st;
    if (!all.divides)
        return err_set(err, SNAP_E_UNSUPPORTED, "--gpus %lld: no layout divides this model",
                       (long long)gpus);
    if (!all.any)
        return SNAP_OK;
    prediction_record *row = next_row(q->out, err);
    if (!row)
        return SNAP_E_USAGE;
    *row = best_of(&all);
    return SNAP_OK;
}

static snap_status predict_map(predict_request *q, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int g = 0; g < q->n_gpus; g++)
        for (int a = 0; a < q->n_arms; a++)
            for (int i = 0; i < q->n_contexts; i++)
                for (int j = 0; j < q->n_batches; j++) {
                    cell c = {{{1, 1, false}}, q->arms[a], q->contexts[i], q->batches[j]};
                    TRY(predict_best(q, q->gpus[g], &c, err));
                }
cleanup:
    return st;
}

/* ---- rows beside measured ones ---- */

static snap_status check_model(const predict_request *q, const step_record *s, const char *file,
                               snap_err *err) {
    size_t n = strlen(s->model_config), m = strlen(q->model);
    n -= text_ends(s->model_config, ".json") ? strlen(".json") : 0;
    m -= text_ends(q->model, ".json") ? strlen(".json") : 0;
    if (n == m && memcmp(s->model_config, q->model, n) == 0)
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE, "--against %s: its model is '%s', and --model-config '%s'",
                   file, s->model_config, q->model);
}

/* Fits the rules again without the measured steps that have the batch and the context of @s. */
static void rules_without(predict_request *q, const step_record *s, rule_book *book) {
    const predict_inputs *in = &q->out->in;
    *book = in->book;
    rules_fit(book, in->steps, in->n, (left_out_cell){s->batch, s->context});
}

static snap_status add_measured(void *ctx, const step_record *s, const char *file, snap_err *err) {
    snap_status st;
    predict_request *q = ctx;
    prediction_record *r = next_row(q->out, err);
    rule_book book = q->out->in.book;
    cell c = {{{1, 1, false}}, CACHE_BF16, s->context, s->batch};
    if (!r)
        return SNAP_E_USAGE;
    TRY(check_model(q, s, file, err));
    TRY(kv_format_parse(s->arm, &c.arm, err));
    if (s->layout[0])
        TRY(predict_request_layout(q, s->layout, &c.layout, err));
    else
        rules_without(q, s, &book);
    TRY(predict_cell(q, &book, &c, r, err));
    if (!r->batch)
        return err_set(err, SNAP_E_USAGE,
                       "--against %s: batch %lld at context %lld does not fit into --gpu-memory",
                       file, (long long)s->batch, (long long)s->context);
    r->parts |= PREDICTION_MEASURED;
    r->measured_ns = s->median_ns;
    r->error_pct = 100 * (r->median_ns / s->median_ns - 1);
    r->measured_attention_ns = s->attention_ns;
    r->measured_exchange_ns = s->exchange_ns;
    r->measured_experts_ns = s->experts_ns;
    r->measured_rest_ns = s->rest_ns;
    r->measured_waiting_ns = s->waiting_ns;
cleanup:
    return st;
}

/* ---- the run ---- */

/* If both rows have one layout, their errors are mostly the same. */
static void set_gain(const rule_book *book, prediction_record *r, const prediction_record *b) {
    const double *x = r->tokens_s_interval, *y = b->tokens_s_interval, e = book->ratio_error;
    bool same = strcmp(r->layout, b->layout) == 0 && isfinite(e);
    r->fp8_over_bf16 = r->tokens_s / b->tokens_s;
    r->fp8_over_bf16_interval[0] = same ? r->fp8_over_bf16 / (1 + e) : x[0] / y[1];
    r->fp8_over_bf16_interval[1] = same ? r->fp8_over_bf16 / fmax(1 - e, 0) : x[1] / y[0];
    if (r->parts & b->parts & PREDICTION_MEASURED)
        r->measured_fp8_over_bf16 =
            (double)r->batch / r->measured_ns / ((double)b->batch / b->measured_ns);
}

/* Whether no row of the same layout, arm and context has more sequences. Files of measured steps do
 * not say which batch was the largest one. */
static bool is_largest(const predict_result *p, const prediction_record *r) {
    for (int i = 0; i < p->n; i++) {
        const prediction_record *o = &p->rows[i];
        if (strcmp(o->arm, r->arm) == 0 && strcmp(o->layout, r->layout) == 0 &&
            o->context == r->context && o->batch > r->batch)
            return false;
    }
    return true;
}

/* A row of the map is compared with the best layout of BF16, whichever that is. */
static bool is_compared(const predict_result *p, const prediction_record *r,
                        const prediction_record *b) {
    if (strcmp(r->arm, "fp8") != 0 || strcmp(b->arm, "bf16") != 0 || !r->batch || !b->batch ||
        r->gpus != b->gpus || (!r->best && strcmp(r->layout, b->layout) != 0))
        return false;
    if (r->parts & PREDICTION_MEASURED)
        return rules_compared((compared_step){r->context, r->batch, is_largest(p, r)},
                              (compared_step){b->context, b->batch, is_largest(p, b)});
    return r->context == b->context && r->largest == b->largest &&
           (r->largest || r->batch == b->batch);
}

/* A row of the same batch is preferred to that of the largest batch. */
static void set_gains(predict_result *p) {
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->n; k++) {
            prediction_record *r = &p->rows[i];
            const prediction_record *b = &p->rows[k];
            if (is_compared(p, r, b) && (isnan(r->fp8_over_bf16) || r->batch == b->batch))
                set_gain(&p->in.book, r, b);
        }
}

static snap_status save(const predict_options *o, const js *config, const predict_result *p,
                        snap_err *err) {
    snap_status st;
    results *r = NULL;
    TRY(results_new(&r, "bench", config, 0, err));
    for (int i = 0; i < p->n; i++)
        TRY(results_add(r, "predicted", record_write(&prediction_type, &p->rows[i]), err));
    TRY(results_save_run(r, o->out, err));
cleanup:
    results_free(r);
    return st;
}

snap_status predict_run(const predict_options *o, const js *config, predict_result *out,
                        snap_err *err) {
    snap_status st;
    memset(out, 0, sizeof *out);
    predict_request *q = calloc(1, sizeof *q);
    if (!q)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a prediction");
    q->out = out;
    TRY(predict_request_read(q, o, err));
    TRY(predict_inputs_read(&out->in, &o->from, err));
    if (o->against)
        TRY(predict_each_step(o->against, add_measured, q, err));
    else if (o->gpus)
        TRY(predict_map(q, err));
    else
        TRY(predict_layouts(q, err));
    set_gains(out);
    if (o->out)
        TRY(save(o, config, out, err));
cleanup:
    predict_request_release(q);
    free(q);
    return st;
}

void predict_release(predict_result *p) {
    arena_release(&p->mem);
}

/* ---- agreement with measured rows ---- */

static const double *measured_part(const prediction_record *r, int part) {
    const double *of[STEP_PARTS] = {&r->measured_attention_ns, &r->measured_exchange_ns,
                                    &r->measured_experts_ns, &r->measured_rest_ns};
    return of[part];
}

static const double *predicted_part(const prediction_record *r, int part) {
    const double *of[STEP_PARTS] = {&r->attention_ns, &r->exchange_ns, &r->experts_ns, &r->rest_ns};
    return of[part];
}

predict_agreement predict_agreement_of(const predict_result *p, const char *layout) {
    predict_agreement a = {0};
    double errors[PREDICT_MOST];
    for (int i = 0; i < p->n; i++) {
        const prediction_record *r = &p->rows[i];
        if (!(r->parts & PREDICTION_MEASURED) || strcmp(r->layout, layout) != 0)
            continue;
        stats_insert(errors, (size_t)a.n++, fabs(r->error_pct));
        for (int k = 0; k < STEP_PARTS; k++)
            a.part_pct[k] += 100 * (*predicted_part(r, k) - *measured_part(r, k)) / r->measured_ns;
    }
    if (!a.n)
        return a;
    a.median_pct = stats_quantile(errors, (size_t)a.n, 0.5);
    a.most_pct = errors[a.n - 1];
    for (int k = 0; k < STEP_PARTS; k++)
        a.part_pct[k] /= a.n;
    return a;
}

/* ---- JSON ---- */

static const char *const kRanges[PREDICT_RANGES] = {"1 to 8", "9 to 64", "65 and more"};

static js *rule_json(const char *name, int range, const rule *r, const char *const terms[]) {
    js *o = js_new_object();
    bool ok = o && js_set_str(o, "part", name) && js_set_str(o, "rows", kRanges[range]) &&
              js_set_int(o, "steps", r->n);
    for (int t = 0; t < PREDICT_TERMS && ok && terms[t]; t++)
        ok = js_set_num(o, terms[t], r->per.of[t]);
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

static bool add_rules(js *list, const rule_book *b) {
    static const char *const kAttention[PREDICT_TERMS] = {"ns_per_block", "ns_per_query",
                                                          "kernel_factor"},
                             *const kMany[] = {"ns_per_expert", "ns_per_byte", "ns_per_e4m3_byte",
                                               "ns_per_moved"},
                             *const kExperts[] = {"ns_per_layer", "ns_per_byte", "ns_per_e4m3_byte",
                                                  "ns_per_moved"},
                             *const kRest[] = {"ns_per_launch", "ns_per_byte", "ns_per_e4m3_byte",
                                               "ns_per_flop"};
    bool ok = true;
    for (int i = 0; i < PREDICT_RANGES && ok; i++) {
        const rules *r = &b->range[i];
        ok = js_push_new(list, rule_json("attention bf16", i, &r->attention[0], kAttention)) &&
             js_push_new(list, rule_json("attention fp8", i, &r->attention[1], kAttention)) &&
             js_push_new(list, rule_json("experts", i, &r->experts, i == 2 ? kMany : kExperts)) &&
             js_push_new(list, rule_json("rest", i, &r->rest, kRest));
    }
    return ok;
}

js *predict_json(const predict_result *p) {
    js *all = js_new_object(), *rows = js_new_array(), *list = js_new_array();
    bool ok =
        all && rows && list && js_set_str(all, "what", "predicted") && add_rules(list, &p->in.book);
    for (int i = 0; i < p->n && ok; i++)
        ok = js_push_new(rows, record_write(&prediction_type, &p->rows[i]));
    ok = js_set_new(all, "rules", list) && ok;
    ok = js_set_new(all, "rows", rows) && ok;
    if (ok)
        return all;
    js_free(all);
    return NULL;
}
