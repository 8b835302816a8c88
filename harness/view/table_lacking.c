/* table_lacking.c - the cells that one file of a comparison lacks and another one has, with the
 * command that measures them. */
#include <string.h>

#include "base/buf.h"
#include "harness/view/compare.h"
#include "harness/view/pen.h"

/* Cells that one command measures: they share scope, conditions (compare.h) and widths. */
typedef struct {
    int file;                 /* the file that lacks them */
    const report_cell *first; /* one of them */
    size_t cells;
} gap;

/* Whether the table has a command for the cell. It has none for named arms, which need their
 * --arm options, for lengths and challenges, which need their data, and for the ablation, which is
 * a study of its own. */
static bool has_command(const report_cell *c) {
    const cell_record *r = c->row;
    return !r->name[0] && !r->lengths.exists && !r->challenge.exists &&
           (strcmp(r->arm, "bf16") == 0 || strcmp(r->arm, "fp8") == 0);
}

static bool lacks(const report_model *m, int file, const report_cell *c) {
    if (!compare_usable(c) || c->file == file)
        return false;
    for (size_t i = 0; i < m->n_cells; i++) {
        const report_cell *own = &m->cells[i];
        if (own->file == file && compare_usable(own) && compare_same_cell(own, c) &&
            compare_same_conditions(own, c))
            return false;
    }
    return true;
}

/* Whether an earlier row of the model is the same cell, so that this one need not be counted. */
static bool is_repeated(const report_model *m, int file, size_t at) {
    const report_cell *c = &m->cells[at];
    for (size_t i = 0; i < at; i++) {
        const report_cell *other = &m->cells[i];
        if (other->file != file && compare_usable(other) && compare_same_cell(other, c) &&
            compare_same_conditions(other, c))
            return true;
    }
    return false;
}

static bool same_gap(const report_cell *a, const report_cell *b) {
    return has_command(a) == has_command(b) && strcmp(a->row->scope, b->row->scope) == 0 &&
           compare_same_conditions(a, b) && a->shape->d_c == b->shape->d_c &&
           a->shape->d_r == b->shape->d_r;
}

/* Returns the gaps of all files, one for each command; cells without a command have gaps of their
 * own. NULL: out of memory. */
static gap *find_gaps(const report_model *m, arena *mem, size_t *n) {
    gap *gaps = arena_alloc(mem, m->n_cells * (size_t)m->n_files + 1, sizeof *gaps);
    *n = 0;
    for (int f = 0; gaps && f < m->n_files; f++) {
        size_t from = *n, g;
        for (size_t i = 0; i < m->n_cells; i++) {
            const report_cell *c = &m->cells[i];
            if (!lacks(m, f, c) || is_repeated(m, f, i))
                continue;
            for (g = from; g < *n && !same_gap(gaps[g].first, c);)
                g++;
            if (g == *n)
                gaps[(*n)++] = (gap){.file = f, .first = c};
            gaps[g].cells++;
        }
    }
    return gaps;
}

static bool same_shape(const cell_shape *a, const cell_shape *b) {
    return a->heads == b->heads && a->s_q == b->s_q && a->batch == b->batch &&
           a->context == b->context;
}

/* Appends the shapes of a gap, each once. Both arms of a shape are measured together. */
static void put_shapes(const report_model *m, const gap *g, buf *out) {
    const char *before = "";
    for (size_t i = 0; i < m->n_cells; i++) {
        const report_cell *c = &m->cells[i];
        bool wanted = lacks(m, g->file, c) && same_gap(g->first, c);
        for (size_t k = 0; wanted && k < i; k++)
            wanted = !(same_shape(m->cells[k].shape, c->shape) && lacks(m, g->file, &m->cells[k]) &&
                       same_gap(g->first, &m->cells[k]));
        if (!wanted)
            continue;
        (void)buf_printf(out, "%s%lld/%lld/%lld/%lld", before, (long long)c->shape->heads,
                         (long long)c->shape->s_q, (long long)c->shape->batch,
                         (long long)c->shape->context);
        before = ",";
    }
}

/* The backend of a file, if its name alone chooses it. */
static const char *backend_of(const report_model *m, int file) {
    static const char *const kNames[] = {"cpu", "cuda", "opencl"};
    for (size_t i = 0; i < m->n_sources; i++)
        for (size_t k = 0; k < sizeof kNames / sizeof *kNames; k++)
            if (m->sources[i].file == file && m->sources[i].row->backend.exists &&
                strcmp(m->sources[i].row->backend.name, kNames[k]) == 0)
                return kNames[k];
    return NULL;
}

static void put_command(pen *p, const report_model *m, const gap *g) {
    buf text = {0};
    const cell_record *r = g->first->row;
    if (!has_command(g->first)) {
        pen_text(p, "");
        return;
    }
    const char *backend = backend_of(m, g->file);
    (void)buf_puts(&text, "snapmla bench");
    if (backend)
        (void)buf_printf(&text, " --backend %s", backend);
    (void)buf_printf(&text, " --scope %s --distribution %s", r->scope, r->distribution);
    if (strcmp(r->mode, "sustained") == 0)
        (void)buf_puts(&text, " --sustained 2");
    if (g->first->shape->d_c != 512 || g->first->shape->d_r != 64)
        (void)buf_printf(&text, " --d-c %lld --d-r %lld", (long long)g->first->shape->d_c,
                         (long long)g->first->shape->d_r);
    (void)buf_puts(&text, " --shapes ");
    put_shapes(m, g, &text);
    p->failed |= text.failed;
    pen_put(p, buf_str(&text));
    buf_release(&text);
}

bool report_table_lacking(const report_model *m, arena *mem, table *t) {
    size_t n = 0;
    gap *gaps = find_gaps(m, mem, &n);
    *t = (table){.id = "lacking",
                 .caption = "What each file lacks",
                 .note = "Cells that another file has. The command measures them on the file's "
                         "device. A row without a command has named arms, drawn lengths, a "
                         "challenge or an ablation, which need the other file's data.",
                 .columns = {{"#", "", TABLE_NUMBER, true},
                             {"device", "", TABLE_TEXT, true},
                             {"cells", "", TABLE_NUMBER, true},
                             {"command", "", TABLE_TEXT, true}}};
    if (!gaps || !pen_start(t, mem, m->n_compared ? n : 0))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; m->n_compared && i < n; i++) {
        pen_fixed(&p, gaps[i].file + 1, 0);
        pen_text(&p, report_device_of(m, gaps[i].file));
        pen_fixed(&p, (double)gaps[i].cells, 0);
        put_command(&p, m, &gaps[i]);
    }
    return !p.failed;
}
