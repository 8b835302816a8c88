#include "harness/serving/load_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const double kLeastRate = 1e-4, kMostRate = 1e6;

/* Rounds to four significant digits: the name of a load point then states its load exactly. */
static double rounded(double load) {
    char text[32];
    double out = load;
    (void)snprintf(text, sizeof text, "%.4g", load);
    return text_to_double(text, &out) ? out : load;
}

snap_status load_range_parse(const char *text, load_range *out, snap_err *err) {
    char from[24];
    const char *colon = strchr(text, ':'), *range = colon ? colon + 1 : "";
    size_t n = strcspn(range, "-");
    *out = (load_range){.closed = text_starts(text, "concurrency:")};
    if ((!out->closed && !text_starts(text, "rate:")) || !range[n] || n >= sizeof from)
        return err_set(err, SNAP_E_USAGE,
                       "--search '%s' must be rate:A-B or concurrency:A-B, for example rate:0.5-16",
                       text);
    memcpy(from, range, n);
    from[n] = '\0';
    double least = out->closed ? 1 : kLeastRate,
           most = out->closed ? BLOCK_IN_FLIGHT_MAX : kMostRate;
    bool read = text_to_double(from, &out->least) && text_to_double(range + n + 1, &out->most);
    bool whole = read && floor(out->least) >= out->least && floor(out->most) >= out->most;
    if (!read || !(out->least >= least) || !(out->most > out->least) || !(out->most <= most) ||
        (out->closed && !whole))
        return err_set(err, SNAP_E_USAGE,
                       "--search '%s': A must be below B, and both must be %s from %g to %g", text,
                       out->closed ? "whole numbers" : "rates", least, most);
    if (!out->closed) {
        out->least = rounded(out->least);
        out->most = rounded(out->most);
    }
    return SNAP_OK;
}

load_point load_range_point(const load_range *range, double load, arrival_pattern gaps) {
    load_point point = {.load = {.pattern = gaps}};
    if (range->closed)
        point.load.users = (int64_t)load;
    else
        point.load.rate = load;
    (void)snprintf(point.name, sizeof point.name, range->closed ? "concurrency %.0f" : "rate %.4g",
                   load);
    return point;
}

/* Whether the arm is open and has too few values for "meets" even if all were within a limit. If
 * the percentile was tested, the values are enough. */
static bool has_few(const serving_arm *a, size_t targets) {
    bool few = false;
    for (size_t i = 0; i < targets; i++) {
        const slo_result *r = &a->target[i];
        few |= r->unconfirmed || (r->state == SLO_OPEN && r->n < r->needed && isnan(r->value));
    }
    return few && a->state == SLO_OPEN;
}

load_search load_search_make(const load_range *range, const serving_measure_options *o) {
    load_search s = {.range = *range, .options = *o};
    s.options.open = !range->closed;
    s.options.states_only = true;
    return s;
}

void load_search_release(load_search *s) {
    for (int p = 0; p < s->n; p++)
        request_list_release(&s->requests[p]);
    s->n = 0;
}

/* The index of the load point with this load; `n` if the load was not chosen. */
static int find(const load_search *s, double load) {
    int p = 0;
    while (p < s->n && fabs(s->load[p] - load) > 1e-9 * load)
        p++;
    return p;
}

int load_search_choose(load_search *s, double load) {
    int p = find(s, load);
    if (p == LOAD_POINTS_MAX)
        return -1;
    if (p == s->n) {
        s->load[s->n++] = load;
        for (int a = 0; a < s->options.arms; a++) /* without requests there are too few values */
            s->known[a][p] = (knee_point){.state = SLO_OPEN, .few = true};
    }
    s->turns[p]++;
    s->choices++;
    return p;
}

static snap_status measure(load_search *s, int point, snap_err *err) {
    const request_list *own = &s->requests[point];
    serving_measured *m;
    if (!serving_is_measured(own->at, own->n, point, s->options.arms))
        return SNAP_OK;
    snap_status st = serving_measure_point(own->at, own->n, point, &s->options, &m, err);
    if (st != SNAP_OK)
        return st;
    s->measured += own->n;
    for (int a = 0; a < s->options.arms; a++)
        s->known[a][point] = (knee_point){.state = m->arm[a].state,
                                          .few = has_few(&m->arm[a], s->options.targets.n)};
    free(m);
    return SNAP_OK;
}

snap_status load_search_add(load_search *s, const serving_request *requests, size_t n,
                            snap_err *err) {
    bool changed[LOAD_POINTS_MAX] = {false};
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < n && st == SNAP_OK; i++) {
        int p = requests[i].point;
        if (p < 0 || p >= s->n)
            return err_set(err, SNAP_E_INPUT, "a request belongs to load point %d of %d", p, s->n);
        changed[p] = true;
        st = request_list_add(&s->requests[p], &requests[i], err);
    }
    for (int p = 0; p < s->n && st == SNAP_OK; p++)
        if (changed[p])
            st = measure(s, p, err);
    return st;
}

/* Whether a load has turns left. knee_next() may return one that has none, for example if a load
 * meets the targets above one that fails. */
static bool may_choose(const load_search *s, double load) {
    int p = find(s, load);
    return p == s->n || s->turns[p] < LOAD_SEARCH_TURNS_EACH;
}

double load_search_next(const load_search *s) {
    knee_options options = KNEE_DEFAULTS;
    int arms = s->options.arms;
    options.least = s->range.least;
    options.most = s->range.most;
    options.first = sqrt(s->range.least * s->range.most);
    options.whole = s->range.closed;
    options.turns_each = LOAD_SEARCH_TURNS_EACH;
    options.turns = LOAD_SEARCH_TURNS * arms;
    for (int i = 0; i < arms; i++) {
        knee_point known[LOAD_POINTS_MAX];
        int arm = (s->choices + i) % arms;
        for (int p = 0; p < s->n; p++) {
            known[p] = s->known[arm][p];
            known[p].load = s->load[p];
            known[p].turns = s->turns[p];
        }
        knee_step step = knee_next(known, (size_t)s->n, &options);
        double wanted = s->range.closed ? step.load : rounded(step.load);
        if (!step.done && may_choose(s, wanted))
            return wanted;
    }
    return (double)NAN;
}
