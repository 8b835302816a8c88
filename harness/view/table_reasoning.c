/* table_reasoning.c - lengths of the reasoning and of the answers, and the settings of requests. */
#include <math.h>

#include "harness/view/pen.h"

static bool has_reasoning(const arm_record *a) {
    return !isnan(a->reasoning_tokens_mean) || !isnan(a->reasoning_chars_mean);
}

bool report_table_reasoning(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "reasoning",
                 .caption = "Lengths of the reasoning and of the answers",
                 .note = "Means over the scored samples that have the count. Tokens are counted by "
                         "the server; without a number it does not report those of the "
                         "reasoning. Characters are Unicode characters of the text that came, "
                         "counted here, of the samples that have reasoning or whose server counts "
                         "it.",
                 .columns = {{"task", "", TABLE_TEXT, true},
                             {"arm", "", TABLE_TEXT, true},
                             {"reasoning", "mean tokens", TABLE_NUMBER, true},
                             {"answer", "mean tokens", TABLE_NUMBER, true},
                             {"reasoning", "mean characters", TABLE_NUMBER, true},
                             {"answer", "mean characters", TABLE_NUMBER, true}}};
    size_t n = 0;
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->arms.n; k++)
            n += has_reasoning(&m->evals[i].row->arms.at[k]);
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->arms.n; k++) {
            const arm_record *a = &m->evals[i].row->arms.at[k];
            if (!has_reasoning(a))
                continue;
            pen_text(&p, m->evals[i].row->task);
            pen_text(&p, a->name);
            pen_fixed(&p, a->reasoning_tokens_mean, 0);
            pen_fixed(&p, a->answer_tokens_mean, 0);
            pen_fixed(&p, a->reasoning_chars_mean, 0);
            pen_fixed(&p, a->answer_chars_mean, 0);
        }
    return !p.failed;
}

bool report_table_requests(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "requests",
                 .caption = "Sampling and settings of the arms' requests",
                 .note = "Only arms whose sampling is not that of the task, or whose requests have "
                         "further settings.",
                 .columns = {{"task", "", TABLE_TEXT, true},
                             {"arm", "", TABLE_TEXT, true},
                             {"sampling", "", TABLE_TEXT, true},
                             {"settings", "", TABLE_TEXT, true}}};
    size_t n = 0;
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->arms.n; k++) {
            const arm_record *a = &m->evals[i].row->arms.at[k];
            n += a->sampling[0] || a->request[0];
        }
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->arms.n; k++) {
            const arm_record *a = &m->evals[i].row->arms.at[k];
            if (!a->sampling[0] && !a->request[0])
                continue;
            pen_text(&p, m->evals[i].row->task);
            pen_text(&p, a->name);
            pen_text(&p, a->sampling);
            pen_printf(&p, "%.400s", a->request);
        }
    return !p.failed;
}
