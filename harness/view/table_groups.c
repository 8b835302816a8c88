/* table_groups.c - results by the fields that a task names, such as length, depth and turn, and the
 * value from which on a format is worse. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "harness/view/pen.h"

static const group_arm_record *arm_in(const group_record *g, const char *name) {
    for (size_t i = 0; i < g->arms.n; i++)
        if (strcmp(g->arms.at[i].name, name) == 0)
            return &g->arms.at[i];
    return NULL;
}

static double accuracy_in(const group_record *g, const char *arm) {
    const group_arm_record *a = arm_in(g, arm);
    return a ? a->accuracy_pct : (double)NAN;
}

static void put_names(pen *p, const pair_record *pair) {
    pen_printf(p, "%s vs %s", pair->arm, pair->baseline);
}

static void put_group(pen *p, const eval_record *e, const group_record *g,
                      const pair_record *pair) {
    const char *baseline = pair ? pair->baseline : e->arms.at[0].name;
    const group_arm_record *a = arm_in(g, baseline);
    pen_task(p, e);
    pen_printf(p, "%s %s", g->by.at[0], g->at.at[0]);
    if (pair)
        put_names(p, pair);
    else
        pen_text(p, baseline);
    pen_fixed(p, (double)(pair ? pair->problems : g->problems), 0);
    pen_fixed(p, a ? a->prompt_tokens_mean : (double)NAN, 0);
    pen_fixed(p, accuracy_in(g, baseline), 2);
    pen_fixed(p, pair ? accuracy_in(g, pair->arm) : (double)NAN, 2);
    pen_signed(p, pair ? pair->delta_pp : (double)NAN, 2);
    const double none[2] = {NAN, NAN};
    pen_interval(p, pair ? pair->ci90_pp : none, 2);
    pen_text(p, pair ? pair->verdict : "");
    pen_p(p, pair ? pair->p_tost : (double)NAN);
    pen_p(p, pair ? pair->p_holm : (double)NAN);
}

static size_t rows_of(const group_record *g) {
    return g->by.n != 1 ? 0 : g->pairs.n ? g->pairs.n : 1;
}

bool report_table_groups(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "groups",
        .caption = "Accuracy by the fields of the tasks",
        .note = "Each row is the problems of a task with one value of a field, such as a length of "
                "4096 tokens. Prompt tokens are the mean that the baseline's server reports. "
                "Verdicts as in the parity table. p Holm is adjusted over the values of the field.",
        .columns = {{"task", "", TABLE_TEXT, true},
                    {"group", "", TABLE_TEXT, true},
                    {"comparison", "", TABLE_TEXT, true},
                    {"n", "", TABLE_NUMBER, true},
                    {"prompt tokens", "", TABLE_NUMBER, true},
                    {"baseline", "accuracy, %", TABLE_NUMBER, true},
                    {"arm", "accuracy, %", TABLE_NUMBER, true},
                    {"Δ", "", TABLE_NUMBER, true},
                    {"90 % CI", "", TABLE_NUMBER, true},
                    {"verdict", "", TABLE_VERDICT, true},
                    {"p TOST", "", TABLE_NUMBER, false},
                    {"p Holm", "", TABLE_NUMBER, false}}};
    size_t n = 0;
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t k = 0; k < m->evals[i].row->groups.n; k++)
            n += rows_of(&m->evals[i].row->groups.at[k]);
    if (!pen_start(t, mem, n))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_evals; i++) {
        const eval_record *e = m->evals[i].row;
        for (size_t k = 0; k < e->groups.n; k++) {
            const group_record *g = &e->groups.at[k];
            for (size_t j = 0; j < rows_of(g); j++)
                put_group(&p, e, g, g->pairs.n ? &g->pairs.at[j] : NULL);
        }
    }
    return !p.failed;
}

/* ---- from which value on an arm is worse ---- */

/* The groups of one field with numbers as values, for one pair. */
typedef struct {
    const char *field;
    const char *equivalent; /* the last value up to which all groups are equivalent; NULL: not even
                               the first is */
    const char *worse;      /* the first value at which the arm is worse; NULL: none */
    size_t values;
} course;

static bool is_worse(const pair_record *p) {
    return !p->refused[0] && strcmp(p->verdict, "different") == 0 && p->delta_pp < 0;
}

/* Reads the groups of the @index-th field, counted from 0. False if there is none. */
static bool follow(const eval_record *e, size_t index, size_t pair, course *out) {
    size_t i = 0, found = 0;
    for (; i < e->groups.n; i++) {
        const group_record *g = &e->groups.at[i];
        bool starts = g->by.n == 1 && (!i || e->groups.at[i - 1].by.n != 1 ||
                                       strcmp(e->groups.at[i - 1].by.at[0], g->by.at[0]) != 0);
        if (starts && found++ == index)
            break;
    }
    *out = (course){0};
    if (i == e->groups.n)
        return false;
    out->field = e->groups.at[i].by.at[0];
    for (; i < e->groups.n && e->groups.at[i].by.n == 1 &&
           strcmp(e->groups.at[i].by.at[0], out->field) == 0;
         i++) {
        const group_record *g = &e->groups.at[i];
        double number;
        if (pair >= g->pairs.n || !text_to_double(g->at.at[0], &number))
            continue;
        bool equal = strcmp(g->pairs.at[pair].verdict, "equivalent") == 0;
        if (equal && (out->values == 0 || out->equivalent) && !out->worse)
            out->equivalent = g->at.at[0];
        else if (!out->worse && is_worse(&g->pairs.at[pair]))
            out->worse = g->at.at[0];
        out->values++;
    }
    return true;
}

static void put_course(pen *p, const eval_record *e, const pair_record *pair, const course *c) {
    pen_task(p, e);
    put_names(p, pair);
    pen_text(p, c->field);
    pen_fixed(p, (double)c->values, 0);
    pen_text(p, c->equivalent ? c->equivalent : "");
    pen_text(p, c->worse ? c->worse : "");
}

static size_t count_courses(const report_model *m) {
    size_t n = 0;
    course c;
    for (size_t i = 0; i < m->n_evals; i++)
        for (size_t pair = 0; pair < m->evals[i].row->pairs.n; pair++)
            for (size_t k = 0; follow(m->evals[i].row, k, pair, &c); k++)
                n += c.values > 1;
    return n;
}

bool report_table_breaks(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "breaks",
                 .caption = "Up to which value the arms are equivalent, and from which on one is "
                            "worse",
                 .note = "Equivalent up to: the largest value such that the verdict is "
                         "'equivalent' at it and at all smaller ones. Worse from: the smallest "
                         "value at which the verdict is 'different' and the arm is worse. At "
                         "several values, one of them may be so by chance.",
                 .columns = {{"task", "", TABLE_TEXT, true},
                             {"comparison", "", TABLE_TEXT, true},
                             {"field", "", TABLE_TEXT, true},
                             {"values", "", TABLE_NUMBER, true},
                             {"equivalent up to", "", TABLE_NUMBER, true},
                             {"worse from", "", TABLE_NUMBER, true}}};
    course c;
    if (!pen_start(t, mem, count_courses(m)))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_evals; i++) {
        const eval_record *e = m->evals[i].row;
        for (size_t pair = 0; pair < e->pairs.n; pair++)
            for (size_t k = 0; follow(e, k, pair, &c); k++)
                if (c.values > 1)
                    put_course(&p, e, &e->pairs.at[pair], &c);
    }
    return !p.failed;
}
