/* table_failures.c - why samples failed. */
#include "harness/view/pen.h"

bool report_table_failures(const report_model *m, arena *mem, table *t) {
    *t =
        (table){.id = "failures",
                .caption = "Reasons of failed samples",
                .note = "Failed samples are left out of the accuracy. Messages that differ only in "
                        "numbers are one reason, with the message of the first sample.",
                .columns = {{"task", "", TABLE_TEXT, true},
                            {"arm", "", TABLE_TEXT, true},
                            {"samples", "", TABLE_NUMBER, true},
                            {"reason", "", TABLE_TEXT, true},
                            {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    size_t n = 0;
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->arms.n; k++)
            n += m->evals[i].row->arms.at[k].failures.n;
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->arms.n; k++) {
            const arm_record *a = &m->evals[i].row->arms.at[k];
            for (size_t f = 0; f < a->failures.n; f++) {
                pen_text(&p, m->evals[i].row->task);
                pen_text(&p, a->name);
                pen_fixed(&p, record_count(a->failures.at[f].count), 0);
                pen_text(&p, a->failures.at[f].reason);
                if (m->n_files > 1)
                    pen_file(&p, m, m->evals[i].file);
            }
        }
    return !p.failed;
}
