/* verify_serving.c - computes the rows of a serving benchmark again from requests.jsonl and
 * compares the stored rows with them, except for values that do not follow from the requests. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/audit/audit.h"
#include "harness/serving/load_points.h"
#include "harness/serving/request_lines.h"
#include "harness/serving/result_rows.h"

static const double kSame = 1e-6; /* relative; other machines round logarithms differently */

/* What the rows say about how they were computed. */
typedef struct {
    serving_measure_options options;
    serving_arm_facts arms[SERVING_ARMS_MAX];
    serving_point *at; /* [points] */
    int points;
    serving_rows_context context;
} setting;

static bool is_kind(const serving_record *r, const char *kind) {
    return strcmp(r->kind, kind) == 0;
}

/* ---- the setting, from the rows ---- */

static int arm_of(const setting *s, const char *name) {
    for (int a = 0; a < s->options.arms; a++)
        if (strcmp(s->arms[a].name, name) == 0)
            return a;
    return -1;
}

static bool add_load(setting *s, const serving_record *r) {
    if (r->point < 0 || r->point >= s->points)
        return false;
    s->at[r->point] = (serving_point){strcmp(r->loop, "open") == 0, r->load};
    s->options.gpus = isnan(r->gpus) ? 0 : r->gpus;
    s->options.correlated_untested &= isnan(r->independence_p);
    s->options.before_units &= !r->units[0];
    if (arm_of(s, r->arm) >= 0)
        return true;
    if (s->options.arms == SERVING_ARMS_MAX)
        return false;
    s->arms[s->options.arms++] = (serving_arm_facts){r->arm, "", "", ""};
    return true;
}

/* Adds the target of a row, unless it is already there: all arms and load points have the same
 * targets. Rows without the level of the percentile come from a build that decided targets only by
 * shares. */
static bool add_target(setting *s, const serving_record *r) {
    char text[128];
    slo_list one = {.n = 0};
    slo_list *all = &s->options.targets;
    (void)snprintf(text, sizeof text, "%.60s=1s", r->target);
    if (!(r->limit_ms > 0) || slo_parse(text, &one, NULL) != SNAP_OK || one.n != 1)
        return false;
    one.at[0].limit_s = r->limit_ms / 1e3;
    s->options.level = r->level_pct / 100;
    s->options.shares_only |= isnan(r->percentile_level_pct);
    for (size_t i = 0; i < all->n; i++)
        if (all->at[i].latency == one.at[0].latency &&
            fabs(all->at[i].quantile - one.at[0].quantile) < 1e-9)
            return true;
    if (all->n == SLO_MAX)
        return false;
    all->at[all->n++] = one.at[0];
    return true;
}

/* Reads the setting. Returns false if the rows do not fit together. @points:
 * [LOAD_POINTS_MAX] */
static bool read_setting(setting *s, const run_record *r, serving_point *points) {
    bool ok = true;
    *s = (setting){.options = SERVING_MEASURE_DEFAULTS, .at = points};
    s->options.correlated_untested = true;
    s->options.before_units = true;
    s->options.arms = 0;
    s->options.seed = (uint64_t)r->provenance.seed;
    for (size_t i = 0; i < r->serving.n; i++) /* points that were not measured have no row */
        if (is_kind(&r->serving.at[i], "load") && r->serving.at[i].point >= s->points &&
            r->serving.at[i].point < LOAD_POINTS_MAX)
            s->points = (int)r->serving.at[i].point + 1;
    for (size_t i = 0; i < r->serving.n && ok; i++) {
        const serving_record *row = &r->serving.at[i];
        if (is_kind(row, "load"))
            ok = add_load(s, row);
        else if (is_kind(row, "target"))
            ok = add_target(s, row);
        else if (is_kind(row, "difference") && row->margin_pct > 0)
            s->options.margin = row->margin_pct / 100;
    }
    s->context = (serving_rows_context){&s->options, s->arms, ""};
    return ok && s->options.arms > 0 && s->options.level > 0 && s->options.level < 1;
}

/* ---- comparing rows ---- */

static bool is_close(double a, double b) {
    return fabs(a - b) <= kSame * fmax(fabs(a), fabs(b)) + 1e-12;
}

static bool same_value(const js *a, const js *b) {
    if (js_is_num(a) && js_is_num(b))
        return is_close(js_num(a), js_num(b));
    if (js_is_array(a) && js_is_array(b)) {
        bool same = js_len(a) == js_len(b);
        for (size_t i = 0; i < js_len(a) && same; i++)
            same = same_value(js_at(a, i), js_at(b, i));
        return same;
    }
    return (!a || js_is_null(a)) && (!b || js_is_null(b)) ? true : a && b && js_equal(a, b);
}

/* Whether the value of @key is one that does not follow from the requests. */
static bool is_stated(const char *key) {
    static const char *const keys[] = {"endpoint", "model",   "precision",
                                       "workload", "quality", "headline"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* Whether two rows describe the same thing. */
static bool is_same_row(const js *a, const js *b) {
    static const char *const keys[] = {"kind",   "arm",    "baseline", "loop", "point",
                                       "metric", "target", "block",    "part"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!same_value(js_get(a, keys[i]), js_get(b, keys[i])))
            return false;
    return true;
}

static void compare_row(js *row, const js *rows, size_t index, verify_findings *f) {
    char where[48];
    js *again = NULL;
    (void)snprintf(where, sizeof where, "serving[%zu]", index);
    for (size_t i = 0; i < js_len(rows) && !again; i++)
        if (is_same_row(row, js_at(rows, i)))
            again = js_at(rows, i);
    f->checks++;
    if (!again) {
        verify_add(f, VERIFY_CORRECTNESS, where, "the requests give no such row");
        return;
    }
    for (void *it = js_first(row); it; it = js_next(row, it))
        if (!is_stated(js_key(it)) && !same_value(js_value(it), js_get(again, js_key(it)))) {
            verify_add(f, VERIFY_CORRECTNESS, where,
                       "%.40s %.40s does not follow from the requests", js_get_str(row, "arm"),
                       js_key(it));
            return;
        }
}

static size_t count_kind(const js *rows, const char *kind) {
    size_t n = 0;
    for (size_t i = 0; i < js_len(rows); i++) {
        const char *is = js_get_str(js_at(rows, i), "kind");
        n += is && strcmp(is, kind) == 0;
    }
    return n;
}

snap_status verify_serving(const results *r, const char *requests, verify_findings *f,
                           snap_err *err) {
    arena mem = {0};
    request_list list = {0};
    run_record run = {.serving = {NULL, 0}};
    setting s;
    js *again = js_new_array(), *rows = results_section(r, "serving");
    serving_point *points = calloc(LOAD_POINTS_MAX, sizeof *points);
    snap_status st = again && points ? run_read(&run, r, &mem, err)
                                     : err_set(err, SNAP_E_NOMEM, "out of memory for findings");
    TRY(st);
    TRY(request_lines_read(requests, &list, err));
    f->checks++;
    if (!read_setting(&s, &run, points)) {
        verify_add(f, VERIFY_FORM, "serving", "the rows do not fit together");
        goto cleanup;
    }
    st = serving_rows_of_run(list.at, list.n, s.at, s.points, &s.context, NULL, again, err);
    if (st == SNAP_E_INPUT) {
        verify_add(f, VERIFY_FORM, "serving", "%.200s",
                   err ? err->text : "the requests do not fit");
        if (err)
            *err = (snap_err){0};
        st = SNAP_OK;
        goto cleanup;
    }
    TRY(st);
    for (size_t i = 0; i < js_len(rows); i++)
        compare_row(js_at(rows, i), again, i, f);
    if (count_kind(rows, "load") != count_kind(again, "load"))
        verify_add(f, VERIFY_CORRECTNESS, "serving", "the requests give %zu load rows, not %zu",
                   count_kind(again, "load"), count_kind(rows, "load"));
cleanup:
    js_free(again);
    free(points);
    request_list_release(&list);
    arena_release(&mem);
    return st;
}
