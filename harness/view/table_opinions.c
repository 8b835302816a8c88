/* table_opinions.c - the judge models, and their second opinions about undecided answers. */
#include <math.h>
#include <string.h>

#include "harness/view/pen.h"

static const pair_record *pair_of(const eval_record *e, const arm_record *a) {
    for (size_t i = 0; i < e->pairs.n; i++)
        if (strcmp(e->pairs.at[i].arm, a->name) == 0 && e->pairs.at[i].opinions.exists)
            return &e->pairs.at[i];
    return NULL;
}

static void put_opinions(pen *p, const eval_record *e, const arm_record *a) {
    const opinion_record *o = &a->opinions;
    const pair_record *pair = pair_of(e, a);
    const double none[2] = {NAN, NAN};
    pen_text(p, e->task);
    pen_text(p, a->name);
    pen_fixed(p, record_count(o->undecided), 0);
    pen_fixed(p, record_count(o->asked), 0);
    pen_fixed(p, record_count(o->accepted), 0);
    pen_fixed(p, record_count(o->refused), 0);
    pen_fixed(p, record_count(o->none), 0);
    pen_fixed(p, a->accuracy_pct, 2);
    pen_fixed(p, o->accuracy_pct, 2);
    pen_signed(p, pair ? pair->opinions.delta_pp : (double)NAN, 2);
    pen_interval(p, pair ? pair->opinions.ci95_pp : none, 2);
}

bool report_table_opinions(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "opinions",
        .caption = "Second opinions of a judge model",
        .note = "The rules leave an answer undecided if they neither show that it equals the right "
                "answer nor that it differs. A judge model was asked about such answers. Its "
                "opinions are only counted: no accuracy or verdict of the other tables uses them. "
                "No opinion: the request failed, or the reply was neither YES nor NO. Δ is the "
                "paired difference to the baseline, in percentage points, if the accepted answers "
                "of both arms counted as correct.",
        .columns = {{"task", "", TABLE_TEXT, true},
                    {"arm", "", TABLE_TEXT, true},
                    {"undecided", "answers", TABLE_NUMBER, true},
                    {"asked", "answers", TABLE_NUMBER, true},
                    {"accepted", "answers", TABLE_NUMBER, true},
                    {"refused", "answers", TABLE_NUMBER, true},
                    {"no opinion", "answers", TABLE_NUMBER, true},
                    {"accuracy", "by the rules, %", TABLE_NUMBER, true},
                    {"accuracy", "with opinions, %", TABLE_NUMBER, true},
                    {"Δ", "with opinions", TABLE_NUMBER, true},
                    {"95 % CI", "with opinions", TABLE_NUMBER, true}}};
    size_t n = 0;
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->arms.n; k++)
            n += m->evals[i].row->arms.at[k].opinions.exists;
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->arms.n; k++)
            if (m->evals[i].row->arms.at[k].opinions.exists)
                put_opinions(&p, m->evals[i].row, &m->evals[i].row->arms.at[k]);
    return !p.failed;
}

bool report_table_judges(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "judges",
                 .caption = "Judge models",
                 .note = "The model that judged open answers, or that was asked for second "
                         "opinions.",
                 .columns = {{"task", "", TABLE_TEXT, true},
                             {"model", "", TABLE_TEXT, true},
                             {"host", "", TABLE_TEXT, true},
                             {"sampling", "", TABLE_TEXT, true},
                             {"settings", "", TABLE_TEXT, true}}};
    size_t n = 0;
    for (size_t i = 0; i < m->n_evals; i++)
        n += m->evals[i].row->judge.exists;
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_evals; i++) {
        const judge_record *j = &m->evals[i].row->judge;
        if (!j->exists)
            continue;
        pen_text(&p, m->evals[i].row->task);
        pen_text(&p, j->model);
        pen_text(&p, j->host[0] ? j->host : j->source);
        pen_text(&p, j->sampling);
        pen_printf(&p, "%.400s", j->request);
    }
    return !p.failed;
}
