/* Runs a serving benchmark whose next loads follow from what was measured. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/eval/run_files.h"
#include "harness/serving/serving_state.h"

/* Notes that the search chose a load. Returns its point; -1: there are too many. */
static int choose(serving *s, double load) {
    load_points *points = &s->out->points;
    int p = load_search_choose(&s->search, load);
    if (p == points->n)
        points->at[points->n++] = load_range_point(&s->search.range, load, s->pattern);
    return p;
}

static void choice_key(char key[32], int choice) {
    (void)snprintf(key, 32, "choice %d", choice);
}

/* Restores from the journal the loads that were chosen before an interruption. */
snap_status serving_restore_search(serving *s, snap_err *err) {
    char key[32];
    for (;;) {
        choice_key(key, s->search.choices);
        const js *row = results_journal_find(s->files.journal, key);
        double load = js_get_num(row, "load", 0);
        if (!row)
            return SNAP_OK;
        int p =
            load >= s->search.range.least && load <= s->search.range.most ? choose(s, load) : -1;
        if (p < 0 || s->search.turns[p] > LOAD_SEARCH_TURNS_EACH)
            return err_set(err, SNAP_E_INPUT,
                           "the journal of '%s' has an impossible load: choose "
                           "another --out",
                           s->opt->out);
    }
}

static snap_status keep_choice(serving *s, double load, snap_err *err) {
    char key[32];
    js *row = js_new_object();
    choice_key(key, s->search.choices);
    if (row && js_set_num(row, "load", load))
        return run_journal_put(s->files.journal, key, row, err);
    js_free(row);
    return serving_no_memory(err);
}

/* Gives the search the requests that were written since the last call. */
static snap_status measure_new(serving *s, snap_err *err) {
    request_list list = {0};
    char *lines = serving_files_path(&s->files, "requests.jsonl");
    snap_status st =
        lines ? request_lines_read_new(lines, &s->searched, &list, err) : serving_no_memory(err);
    if (st == SNAP_OK)
        st = load_search_add(&s->search, list.at, list.n, err);
    request_list_release(&list);
    free(lines);
    return st;
}

snap_status serving_run_search(serving *s, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int p = 0; p < s->search.n; p++)
        for (int turn = 0; turn < s->search.turns[p]; turn++)
            TRY(serving_run_turn(s, p, turn, err));
    for (;;) {
        TRY(measure_new(s, err));
        double load = load_search_next(&s->search);
        if (isnan(load) || s->search.n == LOAD_POINTS_MAX)
            break;
        TRY(keep_choice(s, load, err));
        int p = choose(s, load);
        TRY(serving_run_turn(s, p, s->search.turns[p] - 1, err));
    }
cleanup:
    return st;
}
