#include "harness/serving/serving_results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/term.h"
#include "harness/serving/result_rows.h"

/* A ramp has no single rate, a trace has its own, and a conversation sends several requests: there
 * the load is the rate at which requests were due. */
static serving_point point_of(const load_point *p, const serving_options *o) {
    const serving_load *l = &p->load;
    if (l->users > 0)
        return (serving_point){false, (double)l->users};
    bool single = l->rate > 0 && !(l->from_rate > 0) && o->turns <= 1;
    return (serving_point){true, single ? l->rate : 0};
}

/* The comparison of an arm's answers over all load points: "equivalent" only if they are at each
 * one, and "different" if they are at any. */
static serving_quality quality_of(const serving_result *run, int arm, double margin_pp) {
    serving_quality q = {.verdict = ""};
    for (int i = 0; i < run->n_parity; i++) {
        const parity_row *p = &run->parity[i];
        const char *verdict = stats_verdict_name(p->diff.verdict);
        bool worse = !q.verdict[0] || strcmp(q.verdict, "equivalent") == 0 ||
                     (strcmp(q.verdict, "not shown") == 0 && strcmp(verdict, "different") == 0);
        if (p->arm != arm || !worse)
            continue;
        q = (serving_quality){.verdict = verdict,
                              .margin_pp = margin_pp,
                              .delta_pp = 100 * p->diff.delta,
                              .ci95_pp = {100 * p->diff.ci95.lo, 100 * p->diff.ci95.hi}};
    }
    return q;
}

/* Warns of load points that were not measured. SNAP_E_INPUT if none was. Does nothing for a run
 * that was interrupted. */
static snap_status check_points(const serving_result *run, const request_list *list,
                                snap_err *err) {
    int measured = 0;
    for (int p = 0; p < run->points.n && !run->interrupted; p++) {
        if (serving_is_measured(list->at, list->n, p, run->n_arms))
            measured++;
        else
            term_warn("%s was not measured: no request was due in its blocks; choose a longer "
                      "--duration",
                      run->points.at[p].name);
    }
    return measured || run->interrupted
               ? SNAP_OK
               : err_set(err, SNAP_E_INPUT,
                         "nothing was measured: no request was due in any block; choose a longer "
                         "--duration or a higher load");
}

/* Warns of arms whose requests failed, with the first error of each. */
static void warn_of_failures(const serving_result *run, const request_list *list) {
    for (int arm = 0; arm < run->n_arms; arm++) {
        size_t sent = 0, failed = 0;
        const char *first = "";
        for (size_t i = 0; i < list->n; i++) {
            const serving_request *r = &list->at[i];
            if (r->arm != arm)
                continue;
            if (r->failed && !failed++)
                first = r->error;
            sent++;
        }
        if (failed)
            term_warn("arm '%s': %zu of %zu requests failed; the first error: %s",
                      run->arms[arm].name, failed, sent, first);
    }
}

static snap_status add_rows(const serving_options *o, const serving_result *run,
                            const serving_judgement *judge, const request_list *list, results *to,
                            snap_err *err) {
    serving_measure_options options = SERVING_MEASURE_DEFAULTS;
    serving_quality quality[SERVING_ARMS_MAX];
    serving_point points[LOAD_POINTS_MAX];
    char work[200];
    (void)snprintf(work, sizeof work, "in %.60s, out %.60s",
                   o->prompts ? o->prompts
                   : o->input ? o->input
                              : "-",
                   o->output ? o->output : "-");
    if (run->n_arms > SERVING_ARMS_MAX)
        return err_set(err, SNAP_E_UNSUPPORTED, "at most %d arms can be compared",
                       SERVING_ARMS_MAX);
    options.arms = run->n_arms;
    options.gpus = judge->gpus;
    options.targets = judge->targets;
    options.seed = (uint64_t)o->seed;
    for (int a = 0; a < run->n_arms; a++)
        quality[a] = quality_of(run, a, o->margin_pp);
    for (int p = 0; p < run->points.n; p++)
        points[p] = point_of(&run->points.at[p], o);
    const serving_rows_context context = {&options, run->arms, work};
    js *rows = js_new_array();
    snap_status st = rows ? serving_rows_of_run(list->at, list->n, points, run->points.n, &context,
                                                run->n_parity ? quality : NULL, rows, err)
                          : err_set(err, SNAP_E_NOMEM, "out of memory for the result");
    if (st == SNAP_OK)
        return results_add_all(to, "serving", rows, err);
    js_free(rows);
    return st;
}

snap_status serving_results_make(const serving_options *o, const serving_result *run,
                                 const serving_judgement *judge, const js *config, results **out,
                                 snap_err *err) {
    request_list list = {0};
    results *r = NULL;
    char *requests = fs_join(o->out, "requests.jsonl"), *file = fs_join(o->out, "run.json");
    snap_status st = SNAP_OK;
    *out = NULL;
    TRY(requests && file ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a path"));
    TRY(request_lines_read(requests, &list, err));
    TRY(check_points(run, &list, err));
    warn_of_failures(run, &list);
    TRY(results_new(&r, "bench serving", config, o->seed, err));
    TRY(add_rows(o, run, judge, &list, r, err));
    TRY(run->interrupted ? results_save_unfinished(r, "complete blocks only", file, err)
                         : results_save(r, file, err));
    *out = r;
    r = NULL;
cleanup:
    results_free(r);
    request_list_release(&list);
    free(requests);
    free(file);
    return st;
}
