/* axes.c - rows of cells that differ in one number of the shape only. */
#include <math.h>
#include <string.h>

#include "harness/view/paper.h"
#include "kernels/ceilings.h"

const char *const report_axis_names[AXES] = {"heads", "batch", "context", "s_q"};

int64_t report_axis_value(const report_cell *c, int axis) {
    const int64_t values[AXES] = {c->heads, c->batch, c->context, c->s_q};
    return values[axis];
}

static bool is_kernel(const report_speed *s, int file) {
    return s->any->file == file && !isnan(s->speedup) && strcmp(s->any->scope, "kernel") == 0 &&
           s->bf16->tflops > 0 && s->fp8->tflops > 0;
}

/* All but the axis agree. */
static bool same_row(const report_cell *a, const report_cell *b, int axis) {
    for (int k = 0; k < AXES; k++)
        if (k != axis && report_axis_value(a, k) != report_axis_value(b, k))
            return false;
    return a->d_c == b->d_c && a->d_r == b->d_r && strcmp(a->backend, b->backend) == 0 &&
           strcmp(a->distribution, b->distribution) == 0 && strcmp(a->cold, b->cold) == 0 &&
           strcmp(a->mode, b->mode) == 0;
}

/* The row that starts at @from: speeds are sorted, so its values ascend. */
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
    return c ? (double)c->heads * (double)c->s_q * (double)c->batch * (double)c->context : 0;
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
    return 1e14 * c->tflops / mla_peak_flop_s(&k, MLA_FP8, (int)c->d_c, (int)c->d_r);
}
