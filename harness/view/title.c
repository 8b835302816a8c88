/* title.c - the title of a report. */
#include <string.h>

#include "harness/view/outline.h"

enum { kNames = 5 };

/* The arms that are no controls, in the order of the results. */
typedef struct {
    const char *names[kNames];
    size_t n;
    bool more;         /* there are further names */
    bool one_baseline; /* the first arm is the same in all tasks */
} arms;

static bool is_control(const eval_record *e, const char *arm) {
    for (size_t i = 0; i < e->pairs.n; i++)
        if (e->pairs.at[i].control[0] && strcmp(e->pairs.at[i].arm, arm) == 0)
            return true;
    return false;
}

static void add_arm(arms *a, const char *name) {
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->names[i], name) == 0)
            return;
    if (a->n < kNames)
        a->names[a->n++] = name;
    else
        a->more = true;
}

static arms collect(const report_model *m) {
    arms a = {.one_baseline = true};
    for (size_t i = 0; i < m->n_evals; i++) {
        const eval_record *e = m->evals[i].row;
        for (size_t k = 0; k < e->arms.n; k++) {
            const char *name = e->arms.at[k].name;
            if (!is_control(e, name))
                add_arm(&a, name);
            if (k == 0)
                a.one_baseline &= a.n && strcmp(a.names[0], name) == 0;
        }
    }
    return a;
}

/* Whether the report has measurements of kernels or of this program's own number formats. */
static bool has_formats(const report_model *m) {
    if (m->n_cells || m->n_ceilings || m->n_fidelity || m->n_model_rows || !m->n_evals)
        return true;
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->arms.n; k++)
            if (strcmp(m->evals[i].row->arms.at[k].generator, "local") == 0)
                return true;
    return false;
}

void report_title(const report_model *m, buf *out) {
    arms a = collect(m);
    if (m->n_compared) {
        (void)buf_printf(out, "Comparison of %d devices: FP8 MLA decoding against BF16",
                         m->n_devices);
        return;
    }
    if (m->outline != &report_outline_whole || has_formats(m) || !a.n) {
        (void)buf_puts(out, m->outline->title);
        return;
    }
    bool against = a.one_baseline && a.n > 1;
    size_t from = against;
    (void)buf_puts(out, "Quality of ");
    for (size_t i = from; i < a.n; i++)
        (void)buf_printf(out, "%s%s",
                         i == from                 ? ""
                         : i + 1 == a.n && !a.more ? " and "
                                                   : ", ",
                         a.names[i]);
    (void)buf_puts(out, a.more ? " and others" : "");
    if (against)
        (void)buf_printf(out, " against %s", a.names[0]);
}
