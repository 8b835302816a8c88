#include "harness/view/layout_series.h"

#include <math.h>

static bool same_batches(const layout_point *p, const decode_speed *s) {
    return p->batch[SPEED_BF16] == s->batch[SPEED_BF16] &&
           p->batch[SPEED_FP8] == s->batch[SPEED_FP8];
}

static layout_point point_of(const decode_speed *s) {
    layout_point p = {.context = s->context,
                      .rows = 1,
                      .speedup = s->speedup,
                      .lowest = isfinite(s->speedup_lo) ? s->speedup_lo : s->speedup,
                      .highest = isfinite(s->speedup_hi) ? s->speedup_hi : s->speedup};
    for (int arm = 0; arm < SPEED_ARMS; arm++) {
        p.batch[arm] = s->batch[arm];
        p.tokens_s[arm] = s->tokens_s[arm];
        p.lo[arm] = s->lo[arm];
        p.hi[arm] = s->hi[arm];
    }
    return p;
}

/* Adds a row with the same batches to the means. */
static void add_row(layout_point *p, const decode_speed *s) {
    const double n = (double)++p->rows;
    for (int arm = 0; arm < SPEED_ARMS; arm++)
        p->tokens_s[arm] += (s->tokens_s[arm] - p->tokens_s[arm]) / n;
    p->speedup += (s->speedup - p->speedup) / n;
    p->lowest = fmin(p->lowest, s->speedup);
    p->highest = fmax(p->highest, s->speedup);
}

/* Rows of one context come with ascending batches, so a row with other batches has larger ones. */
static void add_to_series(layout_series *q, const decode_speed *s) {
    if (!q->n || q->points[q->n - 1].context != s->context) {
        q->points[q->n++] = point_of(s);
        return;
    }
    layout_point *last = &q->points[q->n - 1];
    if (same_batches(last, s))
        add_row(last, s);
    else
        *last = point_of(s);
}

bool layout_series_find(const report_model *m, arena *mem, layout_series_list *out) {
    decode_speeds rows;
    *out = (layout_series_list){0};
    if (!decode_speeds_find(m, mem, &rows))
        return false;
    layout_point *points = arena_alloc(mem, rows.n + 1, sizeof *points);
    out->at = arena_alloc(mem, rows.n + 1, sizeof *out->at);
    if (!points || !out->at)
        return false;
    layout_series *q = NULL;
    for (size_t i = 0; i < rows.n; i++) {
        const decode_speed *s = &rows.at[i];
        if (s->sizes.gpus < 2 || s->of_map)
            continue;
        if (!q || decode_speed_compare(q->first, s) != 0) {
            q = &out->at[out->n++];
            *q = (layout_series){s, points + i, 0};
        }
        add_to_series(q, s);
    }
    return true;
}
