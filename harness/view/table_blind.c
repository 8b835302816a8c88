/* table_blind.c - comparisons that can hardly show damage. */
#include "harness/view/pen.h"

bool report_table_blind(const report_model *m, arena *mem, table *t) {
    char why[200];
    size_t n = 0;
    *t = (table){.id = "blind",
                 .caption = "Tasks that can hardly show damage",
                 .note = "On these tasks a missing difference says little about an arm. A task is "
                         "listed if the baseline is not shown to be better than guessing, if its "
                         "accuracy is 99.5 % or more, or if a damaged arm was not found worse.",
                 .columns = {{"task", "", TABLE_TEXT, true},
                             {"reason", "", TABLE_TEXT, true},
                             {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    for (size_t i = 0; i < m->n_evals; i++)
        n += m->evals[i].row->pairs.n && eval_is_blind(m->evals[i].row, why, sizeof why);
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_evals; i++)
        if (m->evals[i].row->pairs.n && eval_is_blind(m->evals[i].row, why, sizeof why)) {
            pen_task(&p, m->evals[i].row);
            pen_text(&p, why);
            if (m->n_files > 1)
                pen_file(&p, m, m->evals[i].file);
        }
    return !p.failed;
}
