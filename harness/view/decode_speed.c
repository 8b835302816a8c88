#include "harness/view/decode_speed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/view/paper.h"
#include "harness/view/paper_pen.h"

bool decode_speed_is_baseline(double bf16, double fp8, double gain) {
    static const double kRounding = 1e-9;
    return fabs(bf16 * gain - fp8) <= kRounding * fabs(fp8);
}

/* ---- measured steps ---- */

/* "4 × NVIDIA H200", or the device alone for one GPU. NULL when out of memory. */
static const char *devices(arena *mem, const char *device, int gpus) {
    buf text = {0};
    if (gpus > 1)
        (void)buf_printf(&text, "%d × ", gpus);
    (void)buf_printf(&text, "%s", device);
    const char *s = text.failed ? NULL : arena_strdup(mem, buf_str(&text));
    buf_release(&text);
    return s;
}

static bool read_step(decode_speed *out, const report_step *s, arena *mem) {
    const layout_sizes sizes = layout_read(s->layout);
    *out = (decode_speed){.model = paper_name(mem, s->model),
                          .layout = s->layout,
                          .conditions = devices(mem, s->device, sizes.gpus),
                          .source = s->name,
                          .sizes = sizes,
                          .context = s->context,
                          .batch = {s->bf16_batch, s->batch},
                          .tokens_s = {s->bf16, s->fp8},
                          .lo = {(double)NAN, (double)NAN},
                          .hi = {(double)NAN, (double)NAN},
                          .speedup = s->speedup,
                          .speedup_lo = (double)NAN,
                          .speedup_hi = (double)NAN};
    return out->model && out->conditions;
}

/* ---- predicted steps ---- */

/* Whether the row is an FP8 step with its gain over BF16, and no measured step is beside it. */
static bool is_speed(const prediction_record *r) {
    return isfinite(r->fp8_over_bf16) && !isfinite(r->measured_ns);
}

/* The BF16 row over which the gain of an FP8 row was computed; NULL if the file lacks it. */
static const prediction_record *bf16_of(const report_model *m, const report_predicted *x) {
    const prediction_record *r = x->row;
    for (size_t i = 0; i < m->n_predicted; i++) {
        const prediction_record *o = m->predicted[i].row;
        if (m->predicted[i].file == x->file && o->context == r->context &&
            decode_speed_is_baseline(o->tokens_s, r->tokens_s, r->fp8_over_bf16) &&
            strcmp(o->arm, "bf16") == 0 && strcmp(o->layout, r->layout) == 0 &&
            strcmp(o->model_config, r->model_config) == 0 && strcmp(o->weights, r->weights) == 0 &&
            strcmp(o->link, r->link) == 0 && strcmp(o->network, r->network) == 0 &&
            strcmp(o->exchange, r->exchange) == 0)
            return o;
    }
    return NULL;
}

/* "8 GPUs, weights in e4m3, link nvlink-4, network ib-ndr". Links that were measured are not
 * named. */
static const char *conditions_of(arena *mem, const prediction_record *r) {
    buf text = {0};
    (void)buf_printf(&text, "%lld %s, weights in %s", (long long)r->gpus,
                     r->gpus == 1 ? "GPU" : "GPUs", r->weights);
    if (r->gpus > 1 && strcmp(r->link, "measured") != 0)
        (void)buf_printf(&text, ", link %s", r->link);
    if (r->network[0])
        (void)buf_printf(&text, ", network %s", r->network);
    if (r->exchange[0])
        (void)buf_printf(&text, ", all-to-all");
    const char *s = text.failed ? NULL : arena_strdup(mem, buf_str(&text));
    buf_release(&text);
    return s;
}

static bool read_predicted(decode_speed *out, const report_model *m, const report_predicted *x,
                           arena *mem) {
    const prediction_record *r = x->row, *b = bf16_of(m, x);
    const double none[2] = {(double)NAN, (double)NAN}, *base = b ? b->tokens_s_interval : none;
    *out = (decode_speed){.predicted = true,
                          .of_map = r->best,
                          .model = paper_name(mem, r->model_config),
                          .layout = r->layout,
                          .conditions = conditions_of(mem, r),
                          .source = m->files[x->file],
                          .sizes = layout_read(r->layout),
                          .context = r->context,
                          .batch = {b ? b->batch : RECORD_NO_COUNT, r->batch},
                          .tokens_s = {r->tokens_s / r->fp8_over_bf16, r->tokens_s},
                          .lo = {base[0], r->tokens_s_interval[0]},
                          .hi = {base[1], r->tokens_s_interval[1]},
                          .speedup = r->fp8_over_bf16,
                          .speedup_lo = r->fp8_over_bf16_interval[0],
                          .speedup_hi = r->fp8_over_bf16_interval[1]};
    return out->model && out->conditions;
}

/* ---- the order of rows ---- */

static int by_number(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

int decode_speed_compare(const decode_speed *a, const decode_speed *b) {
    int d = a->predicted - b->predicted;
    d = d ? d : strcmp(a->model, b->model);
    d = d ? d : layout_compare(&a->sizes, &b->sizes);
    d = d || a->sizes.gpus ? d : strcmp(a->layout, b->layout);
    d = d ? d : strcmp(a->conditions, b->conditions);
    return d || !a->predicted ? d : strcmp(a->source, b->source);
}

static int in_order(const void *x, const void *y) {
    const decode_speed *a = x, *b = y;
    int d = decode_speed_compare(a, b);
    d = d ? d : by_number(a->context, b->context);
    d = d ? d : by_number(a->batch[SPEED_FP8], b->batch[SPEED_FP8]);
    d = d ? d : by_number(a->batch[SPEED_BF16], b->batch[SPEED_BF16]);
    return d ? d : strcmp(a->source, b->source);
}

bool decode_speeds_find(const report_model *m, arena *mem, decode_speeds *out) {
    *out = (decode_speeds){arena_alloc(mem, m->n_steps + m->n_predicted + 1, sizeof *out->at), 0};
    bool ok = out->at != NULL;
    for (size_t i = 0; i < m->n_steps && ok; i++)
        ok = read_step(&out->at[out->n++], &m->steps[i], mem);
    for (size_t i = 0; i < m->n_predicted && ok; i++)
        if (is_speed(m->predicted[i].row))
            ok = read_predicted(&out->at[out->n++], m, &m->predicted[i], mem);
    if (ok)
        qsort(out->at, out->n, sizeof *out->at, in_order);
    return ok;
}
