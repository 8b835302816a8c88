/* axes.c - finds series of cells that differ in one number of the shape only, and computes the
 * percentage of the peak. */
#include <math.h>
#include <string.h>

#include "harness/view/paper.h"
#include "kernels/ceilings.h"

const char *const report_axis_names[AXES] = {"heads", "batch", "context", "s_q"};

int64_t report_axis_value(const report_cell *c, int axis) {
    const int64_t values[AXES] = {c->shape->heads, c->shape->batch, c->shape->context,
                                  c->shape->s_q};
    return values[axis];
}

static bool is_kernel(const report_speed *s, int file) {
    return s->any->file == file && !isnan(s->speedup) &&
           strcmp(s->any->row->scope, "kernel") == 0 && s->bf16->perf->tflops > 0 &&
           s->fp8->perf->tflops > 0;
}

/* Whether the shapes differ at most in @axis, and all conditions are the same. */
static bool same_row(const report_cell *a, const report_cell *b, int axis) {
    for (int k = 0; k < AXES; k++)
        if (k != axis && report_axis_value(a, k) != report_axis_value(b, k))
            return false;
    return a->shape->d_c == b->shape->d_c && a->shape->d_r == b->shape->d_r &&
           strcmp(a->row->backend, b->row->backend) == 0 &&
           strcmp(a->row->distribution, b->row->distribution) == 0 &&
           strcmp(a->row->cold, b->row->cold) == 0 && strcmp(a->row->mode, b->row->mode) == 0;
}

/* Collects the series that starts at @from. Its values ascend: a value that is not larger than the
 * last one is skipped. */
static void collect(const report_model *m, size_t from, int axis, report_axis *out) {
    const report_speed *first = &m->speeds[from];
    int64_t last = -1;
    out->n = 0;
    for (size_t i = from; i < m->n_speeds && out->n < AXIS_POINTS; i++) {
        const report_speed *s = &m->speeds[i];
        if (s->any->file != first->any->file)
            break;
        int64_t value = report_axis_value(s->any, axis);
        if (is_kernel(s, first->any->file) && value > last && same_row(s->any, first->any, axis)) {
            out->at[out->n++] = s;
            last = value;
        }
    }
}

static double work(const report_axis *a) {
    const report_cell *c = a->n ? a->at[a->n - 1]->any : NULL;
    return c ? (double)c->shape->heads * (double)c->shape->s_q * (double)c->shape->batch *
                   (double)c->shape->context
             : 0;
}

bool report_axis_find(const report_model *m, int file, int axis, report_axis *out) {
    report_axis row;
    out->n = 0;
    for (size_t i = 0; i < m->n_speeds; i++) {
        if (!is_kernel(&m->speeds[i], file))
            continue;
        collect(m, i, axis, &row);
        if (row.n > out->n || (row.n == out->n && work(&row) > work(out)))
            *out = row;
    }
    return out->n > 1;
}

double report_peak_pct(const report_model *m, const report_cell *c) {
    mla_ceilings k = {.bf16.rate = report_ceiling_of(m, c->file, "bf16_mma"),
                      .fp8.rate = report_ceiling_of(m, c->file, "fp8_mma")};
    if (!(k.bf16.rate > 0) || !(k.fp8.rate > 0))
        return (double)NAN;
    return 1e14 * c->perf->tflops /
           mla_peak_flop_s(&k, MLA_FP8, (int)c->shape->d_c, (int)c->shape->d_r);
}
