#include "harness/serving/load_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "harness/serving/knee.h"

static const double kLeastRate = 1e-4, kMostRate = 1e6;

/* Four significant digits: the name of a load point then states its load exactly. */
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

/* Even if all values were within the limits, they would be too few for "meets". */
static bool has_few(const serving_arm *a, size_t targets) {
    bool few = false;
    for (size_t i = 0; i < targets; i++)
        few |= a->target[i].state == SLO_OPEN && a->target[i].n < a->target[i].needed;
    return few && a->state == SLO_OPEN;
}

/* @known: [arms][points] */
static snap_status survey(const serving_request *requests, size_t n, const double *load,
                          const int *turns, int points, const serving_measure_options *o,
                          knee_point *known, snap_err *err) {
    for (int p = 0; p < points; p++) {
        serving_measured *m;
        snap_status st = serving_measure_point(requests, n, p, o, &m, err);
        if (st != SNAP_OK)
            return st;
        for (int a = 0; a < o->arms; a++)
            known[a * points + p] = (knee_point){.load = load[p],
                                                 .state = m->arm[a].state,
                                                 .few = has_few(&m->arm[a], o->targets.n),
                                                 .turns = turns[p]};
        free(m);
    }
    return SNAP_OK;
}

/* How often a load was chosen. It can be chosen too often only if states contradict each other: if
 * a load meets the targets above one that fails. */
static int turns_at(double wanted, const double *load, const int *turns, int points) {
    for (int p = 0; p < points; p++)
        if (fabs(load[p] - wanted) <= 1e-9 * wanted)
            return turns[p];
    return 0;
}

snap_status load_search_next(const load_range *range, const serving_request *requests, size_t n,
                             const double *load, const int *turns, int points,
                             const serving_measure_options *o, double *next, snap_err *err) {
    serving_measure_options own = *o;
    knee_options options = KNEE_DEFAULTS;
    knee_point *known = calloc((size_t)o->arms * (size_t)points + 1, sizeof *known);
    int taken = 0;
    *next = (double)NAN;
    if (!known)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the search");
    own.open = !range->closed;
    options.least = range->least;
    options.most = range->most;
    options.first = sqrt(range->least * range->most);
    options.whole = range->closed;
    options.turns_each = LOAD_SEARCH_TURNS_EACH;
    options.turns = LOAD_SEARCH_TURNS * o->arms;
    snap_status st = survey(requests, n, load, turns, points, &own, known, err);
    for (int p = 0; p < points; p++)
        taken += turns[p];
    for (int i = 0; i < o->arms && st == SNAP_OK && isnan(*next); i++) {
        int arm = (taken + i) % o->arms;
        knee_step step = knee_next(known + arm * points, (size_t)points, &options);
        double wanted = range->closed ? step.load : rounded(step.load);
        if (!step.done && turns_at(wanted, load, turns, points) < LOAD_SEARCH_TURNS_EACH)
            *next = wanted;
    }
    free(known);
    return st;
}
