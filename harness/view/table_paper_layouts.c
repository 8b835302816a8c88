/* table_paper_layouts.c - the counterpart of Figure 1 of the SnapMLA paper as a table: tokens/s of
 * a model on several GPUs. Three rows for each model and layout, one column for each context. */
#include <math.h>
#include <string.h>

#include "harness/view/layout_series.h"
#include "harness/view/paper_pen.h"

enum { kContexts = 8 };

/* The contexts that have a column, ascending. */
typedef struct {
    int64_t at[kContexts];
    int n;
} contexts;

/* Adds a context. If there is no room, the shortest one is dropped. */
static void add_context(contexts *c, int64_t context) {
    int place = 0;
    while (place < c->n && c->at[place] < context)
        place++;
    if (place < c->n && c->at[place] == context)
        return;
    if (c->n < kContexts) {
        memmove(c->at + place + 1, c->at + place, (size_t)(c->n++ - place) * sizeof *c->at);
        c->at[place] = context;
    } else if (place > 0) {
        memmove(c->at, c->at + 1, (size_t)(place - 1) * sizeof *c->at);
        c->at[place - 1] = context;
    }
}

static contexts find_contexts(const layout_series_list *all) {
    contexts c = {.n = 0};
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < all->at[i].n; k++)
            add_context(&c, all->at[i].points[k].context);
    return c;
}

static const layout_point *point_at(const layout_series *s, int64_t context) {
    for (size_t i = 0; i < s->n; i++)
        if (s->points[i].context == context)
            return &s->points[i];
    return NULL;
}

/* ---- rows ---- */

static void put_speed(pen *p, const layout_point *x, int arm) {
    if (x)
        paper_put_speed(p, x->tokens_s[arm], x->lo[arm], x->hi[arm]);
    else
        pen_text(p, "");
}

/* Writes the mean ratio, and the range or interval if its ends differ with two decimals. */
static void put_ratio(pen *p, const layout_point *x) {
    char lo[FORMAT_MAX], hi[FORMAT_MAX];
    format_fixed(x ? x->lowest : (double)NAN, 2, lo);
    format_fixed(x ? x->highest : (double)NAN, 2, hi);
    if (x && strcmp(lo, hi) != 0)
        pen_printf(p, "%.2f× (%s–%s)", x->speedup, lo, hi);
    else
        pen_times(p, x ? x->speedup : (double)NAN);
}

static void put_head(pen *p, const layout_series *s, const char *shows) {
    char layout[LAYOUT_SHORT_MAX];
    pen_put(p, s->first->predicted ? PAPER_PREDICTED : PAPER_MEASURED);
    pen_text(p, s->first->model);
    pen_text(p, layout_short(s->first->layout, layout));
    pen_text(p, s->first->conditions);
    pen_put(p, shows);
}

/* The least and the most rows of a point: "2", "1–2". A prediction has no runs. */
static void put_runs(pen *p, const layout_series *s) {
    size_t least = s->points[0].rows, most = least;
    for (size_t i = 0; i < s->n; i++) {
        least = s->points[i].rows < least ? s->points[i].rows : least;
        most = s->points[i].rows > most ? s->points[i].rows : most;
    }
    if (s->first->predicted)
        pen_text(p, "");
    else if (least == most)
        pen_printf(p, "%zu", most);
    else
        pen_printf(p, "%zu–%zu", least, most);
}

static void put_series(pen *p, const layout_series *s, const contexts *c) {
    static const char *const shows[] = {"BF16", "FP8"};
    double highest = (double)NAN;
    for (size_t i = 0; i < s->n; i++)
        highest = fmax(highest, s->points[i].speedup);
    for (int arm = 0; arm < SPEED_ARMS; arm++) {
        put_head(p, s, shows[arm]);
        for (int i = 0; i < c->n; i++)
            put_speed(p, point_at(s, c->at[i]), arm);
        pen_text(p, "");
        put_runs(p, s);
    }
    put_head(p, s, "FP8 / BF16");
    for (int i = 0; i < c->n; i++)
        put_ratio(p, point_at(s, c->at[i]));
    pen_times(p, highest);
    put_runs(p, s);
}

static bool is_shown(const report_quote *q) {
    return strcmp(q->about, "speed") == 0 && layout_read(q->layout).gpus > 1 &&
           isfinite(q->speedup);
}

static void put_quote(pen *p, const report_quote *q, const contexts *c) {
    char layout[LAYOUT_SHORT_MAX];
    pen_put(p, PAPER_REPORTED);
    pen_text(p, q->model);
    pen_text(p, layout_short(q->layout, layout));
    pen_text(p, q->what);
    pen_put(p, "FP8 / BF16");
    paper_blank(p, c->n);
    pen_times(p, q->speedup);
    pen_text(p, "");
}

/* ---- the table ---- */

/* Adds a column for each context, and the columns after them. */
static bool add_columns(table *t, const contexts *c, arena *mem) {
    char head[FORMAT_MAX];
    int n = 0;
    while (t->columns[n].head)
        n++;
    for (int i = 0; i < c->n; i++) {
        format_context(c->at[i], head);
        t->columns[n] = (table_column){arena_strdup(mem, head), "context", TABLE_NUMBER, true};
        if (!t->columns[n++].head)
            return false;
    }
    t->columns[n++] = (table_column){"highest", "", TABLE_NUMBER, true};
    t->columns[n] = (table_column){"runs", "", TABLE_NUMBER, true};
    return true;
}

bool report_table_paper_layouts(const report_model *m, arena *mem, table *t) {
    layout_series_list all;
    size_t quotes = 0;
    *t = (table){
        .id = "paper-layouts",
        .caption = "Throughput on several GPUs (Figure 1): tokens/s of all GPUs",
        .note =
            "The counterpart of Figure 1 of the SnapMLA paper. Each cell has the largest FP8 batch "
            "of its context, and the BF16 step that it was compared with. The table of decoding "
            "speed has the batches and sources. Runs: in how many files a cell was measured, "
            "usually once with BF16 first and once with FP8 first. Of several runs, a cell has the "
            "mean. The lowest and the highest ratio of a run are in parentheses if they differ "
            "with two decimals. Predicted tokens/s and ratios have their interval in parentheses. "
            "Highest: the largest ratio of the row. At most eight contexts are shown, the longest "
            "ones. If the name of a model has a number of layers, these are not the tokens/s of "
            "the whole model." PAPER_REPORTED_NOTE,
        .columns = {{"origin", "", TABLE_TEXT, true},
                    {"model", "", TABLE_TEXT, true},
                    {"layout", "", TABLE_TEXT, true},
                    {"device or conditions", "", TABLE_TEXT, true},
                    {"cache", "", TABLE_TEXT, true}}};
    if (!layout_series_find(m, mem, &all))
        return false;
    const contexts c = find_contexts(&all);
    for (size_t i = 0; i < m->n_quotes; i++)
        quotes += is_shown(&m->quotes[i]);
    if (!add_columns(t, &c, mem) || !pen_start(t, mem, (SPEED_ARMS + 1) * all.n + quotes))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < all.n; i++)
        put_series(&p, &all.at[i], &c);
    for (size_t i = 0; i < m->n_quotes; i++)
        if (is_shown(&m->quotes[i]))
            put_quote(&p, &m->quotes[i], &c);
    return !p.failed;
}
