#include <math.h>
#include <string.h>

#include "harness/view/format.h"
#include "harness/view/outline.h"
#include "harness/view/writers.h"

static void header(buf *out, const table *t) {
    for (int c = 0; c < t->n_columns; c++) {
        const table_column *col = &t->columns[c];
        (void)buf_puts(out, "| ");
        format_markdown(out, col->group);
        (void)buf_puts(out, col->group[0] ? " " : "");
        format_markdown(out, col->head);
        (void)buf_puts(out, " ");
    }
    (void)buf_puts(out, "|\n");
    for (int c = 0; c < t->n_columns; c++)
        (void)buf_puts(out, t->columns[c].kind == TABLE_NUMBER ? "|---:" : "|:---");
    (void)buf_puts(out, "|\n");
}

static void body(buf *out, const table *t) {
    for (size_t r = 0; r < t->n_rows; r++) {
        for (int c = 0; c < t->n_columns; c++) {
            (void)buf_puts(out, "| ");
            format_markdown(out, table_at(t, r, c));
            (void)buf_puts(out, " ");
        }
        (void)buf_puts(out, "|\n");
    }
}

void write_markdown(const table *t, buf *out) {
    out->failed |= t->failed;
    header(out, t);
    body(out, t);
}

static void section(buf *out, const table *t) {
    (void)buf_puts(out, "\n## ");
    format_markdown(out, t->caption);
    (void)buf_puts(out, "\n\n");
    write_markdown(t, out);
    if (!t->note[0])
        return;
    (void)buf_puts(out, "\n");
    format_markdown(out, t->note);
    (void)buf_puts(out, "\n");
}

static void gains(const report_model *m, buf *out) {
    for (int k = 0; k < REPORT_SCOPES; k++) {
        const report_gain *g = &m->gains[k];
        if (!g->n && !g->flagged)
            continue;
        (void)buf_printf(out, "\nSpeed-up of FP8 over BF16, scope %s: ", g->scope);
        if (g->n)
            (void)buf_printf(out, "**%.2f×** ", g->mean);
        (void)buf_puts(out, "(");
        report_gain_text(g, out);
        (void)buf_puts(out, ").\n");
    }
}

static void interruptions(const report_model *m, buf *out) {
    for (size_t i = 0; i < m->n_sources; i++) {
        if (!m->sources[i].row->interrupted[0])
            continue;
        (void)buf_puts(out, "\n");
        format_markdown(out, m->files[m->sources[i].file]);
        (void)buf_puts(out, ": interrupted: ");
        format_markdown(out, m->sources[i].row->interrupted);
        (void)buf_puts(out, ".\n");
    }
}

static void add_table(const report_model *m, report_table_fn build, buf *out) {
    arena mem = {0};
    table t;
    if (!report_build(m, build, &mem, &t))
        out->failed = true;
    else if (t.n_rows)
        section(out, &t);
    arena_release(&mem);
}

static void outline_section(const report_model *m, const report_section *s, buf *out) {
    if (s->absent && !s->measured(m)) {
        (void)buf_printf(out, "\n**%s.** ", s->title);
        format_markdown(out, s->absent);
        (void)buf_puts(out, "\n");
    }
    for (int i = 0; i < OUTLINE_PARTS; i++)
        if (s->parts[i].build)
            add_table(m, s->parts[i].build, out);
}

void report_markdown(const report_model *m, buf *out) {
    buf title = {0};
    report_title(m, &title);
    (void)buf_printf(out, "# %s\n", m->n_compared ? buf_str(&title) : "snapmla report");
    out->failed |= title.failed;
    buf_release(&title);
    interruptions(m, out);
    if (!m->n_compared) /* a mean over several machines describes none of them */
        gains(m, out);
    for (const report_section *s = m->outline->sections; s->title; s++)
        outline_section(m, s, out);
    add_table(m, report_table_sources, out);
}
