/* table_mismatch.c - lists evaluations of the same task that cannot be compared. */
#include <string.h>

#include "harness/view/pen.h"

/* Two evaluations of a task are comparable only if they agree in these properties. */
enum { MUST_AGREE = 5, DIGESTS = 3 };
static const char *const kNames[MUST_AGREE] = {"data", "prompts", "task file", "grader",
                                               "sampling"};

static const char *value(const report_eval *e, int i) {
    const char *const values[MUST_AGREE] = {e->row->dataset.sha256, e->row->prompt_sha256,
                                            e->row->task_sha256, e->row->grader, e->sampling};
    return values[i];
}

/* The first evaluation of the same task before this one; NULL if there is none. */
static const report_eval *earlier(const report_model *m, size_t index) {
    const report_eval *e = &m->evals[index];
    for (size_t i = 0; i < index; i++)
        if (strcmp(m->evals[i].row->task, e->row->task) == 0)
            return &m->evals[i];
    return NULL;
}

static bool differ(const report_eval *a, const report_eval *b, int i) {
    return a && value(a, i)[0] && value(b, i)[0] && strcmp(value(a, i), value(b, i)) != 0;
}

/* The first properties are digests: only their first 12 digits are shown. */
static void put_value(pen *p, const report_eval *e, int i) {
    if (i < DIGESTS)
        pen_printf(p, "%.12s", value(e, i));
    else
        pen_text(p, value(e, i));
}

bool report_table_mismatches(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "mismatches",
        .caption = "Runs of a task that are not comparable",
        .note =
            "These runs of a task differ in their data, prompts, task file, grader or sampling. "
            "Their accuracies are compared within each run but not between runs.",
        .columns = {{"task", "", TABLE_TEXT, true},
                    {"differs", "", TABLE_TEXT, true},
                    {"file", "first", TABLE_TEXT, true},
                    {"value", "first", TABLE_TEXT, true},
                    {"file", "other", TABLE_TEXT, true},
                    {"value", "other", TABLE_TEXT, true}}};
    size_t n = 0;
    for (size_t k = 0; k < m->n_evals; k++)
        for (int i = 0; i < MUST_AGREE; i++)
            n += differ(earlier(m, k), &m->evals[k], i);
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t k = 0; k < m->n_evals; k++) {
        const report_eval *first = earlier(m, k), *other = &m->evals[k];
        for (int i = 0; i < MUST_AGREE; i++) {
            if (!differ(first, other, i))
                continue;
            pen_text(&p, other->row->task);
            pen_text(&p, kNames[i]);
            pen_file(&p, m, first->file);
            put_value(&p, first, i);
            pen_file(&p, m, other->file);
            put_value(&p, other, i);
        }
    }
    return !p.failed;
}
