#include "harness/view/pen.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool any_kernel(const report_model *m, const char *kernel) {
    for (size_t i = 0; i < m->n_measured; i++)
        if (strcmp(m->cells[i].row->kernel, kernel) == 0)
            return true;
    return false;
}

bool pen_note_units(table *t, const report_model *m, arena *mem) {
    static const char *const kernels[][2] = {
        {"sm90_fp8", " FP8 rows of the kernel sm90_fp8 round P in a unit that is kept over pages."},
        {"page_units_fp8",
         " FP8 rows of the kernel page_units_fp8 round P in a unit of each page, as the paper "
         "does."}};
    buf text = {0};
    (void)buf_printf(&text, "%s", t->note);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (any_kernel(m, kernels[i][0]))
            (void)buf_printf(&text, "%s", kernels[i][1]);
    t->note = text.failed ? NULL : arena_strdup(mem, buf_str(&text));
    buf_release(&text);
    return t->note != NULL;
}

bool pen_start(table *t, arena *mem, size_t rows) {
    for (t->n_columns = 0; t->n_columns < TABLE_COLUMNS_MAX && t->columns[t->n_columns].head;)
        t->n_columns++;
    t->mem = mem;
    t->capacity = (rows + 1) * (size_t)t->n_columns;
    t->cells = arena_alloc(mem, t->capacity, sizeof *t->cells);
    return t->cells != NULL;
}

void pen_put(pen *p, const char *text) {
    table_put(p->t, text);
    p->failed |= p->t->failed;
}

void pen_text(pen *p, const char *text) {
    pen_put(p, text[0] ? text : FORMAT_NONE);
}

void pen_printf(pen *p, const char *fmt, ...) {
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    p->failed |= n < 0;
    pen_put(p, n < 0 ? "" : text);
    if (n >= 0)
        free(text);
}

void pen_fixed(pen *p, double x, int decimals) {
    char text[FORMAT_MAX];
    format_fixed(x, decimals, text);
    pen_put(p, text);
}

void pen_digits(pen *p, double x) {
    enum { kDigits = 3, kMost = 12 };
    int whole = x > 0 && isfinite(x) ? (int)floor(log10(x)) + 1 : kDigits;
    int decimals = kDigits - whole;
    pen_fixed(p, x, decimals < 0 ? 0 : decimals > kMost ? kMost : decimals);
}

void pen_signed(pen *p, double x, int decimals) {
    char text[FORMAT_MAX];
    format_signed(x, decimals, text);
    pen_put(p, text);
}

void pen_interval(pen *p, const double x[2], int decimals) {
    char text[FORMAT_MAX];
    format_interval(x, decimals, text);
    pen_put(p, text);
}

void pen_range(pen *p, const double x[2], int decimals) {
    char text[FORMAT_MAX];
    format_range(x, decimals, text);
    pen_put(p, text);
}

void pen_times(pen *p, double ratio) {
    enum { kSmall = 10 }; /* below 1 / kSmall, two decimals are too few */
    char text[FORMAT_MAX];
    if (ratio > 0 && ratio * kSmall < 1) {
        pen_printf(p, "%.2g×", ratio);
        return;
    }
    format_fixed(ratio, 2, text);
    pen_printf(p, "%s%s", text, isnan(ratio) ? "" : "×");
}

void pen_shape(pen *p, const report_cell *c) {
    pen_fixed(p, (double)c->shape->heads, 0);
    pen_fixed(p, (double)c->shape->s_q, 0);
    pen_fixed(p, (double)c->shape->batch, 0);
    char context[FORMAT_MAX];
    format_context(c->shape->context, context);
    if (c->row->lengths.exists)
        pen_printf(p, "%s max, %lld sum, %s", context, (long long)c->row->lengths.tokens,
                   c->row->lengths.distribution);
    else
        pen_context(p, c->shape->context);
}

void pen_science(pen *p, double x) {
    char text[FORMAT_MAX];
    format_science(x, text);
    pen_put(p, text);
}

void pen_context(pen *p, int64_t n) {
    char text[FORMAT_MAX];
    format_context(n, text);
    pen_put(p, text);
}

void pen_p(pen *p, double x) {
    char text[FORMAT_MAX];
    format_p(x, text);
    pen_put(p, text);
}

void pen_file(pen *p, const report_model *m, int file) {
    if (m->labels && p->t->n_columns) {
        p->t->columns[p->t->n_cells % (size_t)p->t->n_columns].head = "device";
        p->t->columns[p->t->n_cells % (size_t)p->t->n_columns].paper = true;
    }
    pen_put(p, report_name_of(m, file));
}

bool report_build(const report_model *m, report_table_fn build, arena *mem, table *t) {
    if (!build(m, mem, t))
        return false;
    if (m->labels && t->n_columns && strcmp(t->columns[t->n_columns - 1].head, "device") == 0)
        table_last_to_front(t);
    return true;
}

void pen_drop_last_unless(table *t, bool needed) {
    int n = 0;
    while (n < TABLE_COLUMNS_MAX && t->columns[n].head)
        n++;
    if (!needed)
        t->columns[n - 1] = (table_column){0};
}

void pen_drop_unless(table *t, const char *head, bool needed) {
    int c = 0;
    while (c < TABLE_COLUMNS_MAX && t->columns[c].head && strcmp(t->columns[c].head, head) != 0)
        c++;
    for (; !needed && c < TABLE_COLUMNS_MAX; c++)
        t->columns[c] = c + 1 < TABLE_COLUMNS_MAX ? t->columns[c + 1] : (table_column){0};
}

void pen_task(pen *p, const eval_record *e) {
    const char *mark = eval_data_mark(e);
    pen_printf(p, "%s%s%s%s", e->task[0] ? e->task : FORMAT_NONE, mark[0] ? " (" : "", mark,
               mark[0] ? ")" : "");
}
