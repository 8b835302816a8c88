#include "harness/serving/knee.h"

#include <math.h>

/* Loads with a smaller relative difference are the same. */
static const double kSame = 1e-9;

typedef struct {
    double lo, hi;                /* highest load that meets, lowest that fails */
    double lowest, highest;       /* loads that were measured */
    double first_open, last_open; /* open loads between lo and hi; NAN = none */
    const knee_point *again;      /* open load with the fewest turns; NULL = none has turns left */
    const knee_point *few;        /* like `again`, but only among loads with too few values for
                                     "meets" */
    int turns;
} survey;

/* Finds the interval. knee.h assumes that no load above one that fails meets the targets. If one
 * does, the interval spans both. */
static void find_ends(const knee_point *p, size_t n, survey *s) {
    double fails = (double)INFINITY, meets = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i].state == SLO_FAILS)
            fails = fmin(fails, p[i].load);
        if (p[i].state == SLO_MEETS)
            meets = fmax(meets, p[i].load);
    }
    s->lo = 0;
    s->hi = (double)INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (p[i].state == SLO_MEETS && p[i].load < fails)
            s->lo = fmax(s->lo, p[i].load);
        if (p[i].state == SLO_FAILS && p[i].load > meets)
            s->hi = fmin(s->hi, p[i].load);
    }
}

/* The flag that puts the state @state of the load @load in doubt; NULL = there is no such flag, or
 * no such load. */
static const char *doubt_at(const knee_point *p, size_t n, slo_state state, double load) {
    for (size_t i = 0; i < n; i++)
        if (p[i].state == state && !(fabs(p[i].load - load) > 0) && p[i].doubt && p[i].doubt[0])
            return p[i].doubt;
    return NULL;
}

static survey survey_of(const knee_point *p, size_t n, const knee_options *o) {
    survey s = {.lowest = (double)INFINITY, .first_open = (double)NAN, .last_open = (double)NAN};
    find_ends(p, n, &s);
    for (size_t i = 0; i < n; i++) {
        s.turns += p[i].turns;
        s.lowest = fmin(s.lowest, p[i].load);
        s.highest = fmax(s.highest, p[i].load);
        if (p[i].state != SLO_OPEN || p[i].load <= s.lo || p[i].load >= s.hi)
            continue;
        s.first_open = fmin(s.first_open, p[i].load);
        s.last_open = fmax(s.last_open, p[i].load);
        if (p[i].turns >= o->turns_each)
            continue;
        if (!s.again || p[i].turns < s.again->turns)
            s.again = &p[i];
        if (p[i].few && (!s.few || p[i].turns < s.few->turns))
            s.few = &p[i];
    }
    return s;
}

/* The load to measure between two others; NAN if they are close enough, or if no whole number lies
 * between them. */
static double between(double lo, double hi, const knee_options *o) {
    double mid = sqrt(lo * hi);
    if (!(hi / lo > 1 + o->resolution))
        return (double)NAN;
    if (!o->whole)
        return mid;
    mid = floor(mid + 0.5);
    mid = mid <= lo ? lo + 1 : mid >= hi ? hi - 1 : mid;
    return mid > lo && mid < hi ? mid : (double)NAN;
}

static double in_range(double load, const knee_options *o) {
    load = fmin(fmax(load, o->least), o->most);
    return o->whole ? fmax(1, floor(load + 0.5)) : load;
}

static bool is_same(double a, double b) {
    return fabs(a - b) <= kSame * fmax(a, b);
}

static knee_step finish(knee_step s, const char *why) {
    s.done = true;
    s.why = why;
    return s;
}

/* The next load outside the loads so far; NAN if there is none. */
static double outside(const survey *s, const knee_options *o, const char **why) {
    bool up = isinf(s->hi);
    double from = up ? s->highest : s->lowest, load = in_range(up ? 2 * from : from / 2, o);
    if (!is_same(load, from))
        return load;
    *why = !is_same(up ? s->lo : s->hi, from) ? "open loads"
           : up ? "meets at the highest load"
                : "fails at the lowest load";
    return (double)NAN;
}

/* The next load inside the interval; NAN if there is none. */
static double inside(const survey *s, const knee_options *o, const char **why) {
    double load;
    *why = "narrow enough";
    if (isnan(s->first_open))
        return between(s->lo, s->hi, o);
    double below = between(s->lo, s->first_open, o), above = between(s->last_open, s->hi, o);
    bool take_above = s->hi / s->last_open > s->first_open / s->lo;
    load = take_above ? above : below;
    load = isnan(load) ? (take_above ? below : above) : load;
    if (!isnan(load) || isnan(between(s->lo, s->hi, o)))
        return load;
    *why = "open loads";
    return s->again ? s->again->load : (double)NAN;
}

knee_step knee_next(const knee_point *points, size_t n, const knee_options *o) {
    survey s = survey_of(points, n, o);
    knee_step out = {
        .load = (double)NAN,
        .lo = s.lo,
        .hi = s.hi,
        .why = "",
        .doubt = {doubt_at(points, n, SLO_MEETS, s.lo), doubt_at(points, n, SLO_FAILS, s.hi)}};
    const char *why = "";
    if (!n) {
        out.load = in_range(o->first, o);
        return out;
    }
    if (s.turns >= o->turns)
        return finish(out, "no more turns");
    if (s.few)
        out.load = s.few->load;
    else if (isinf(s.hi) || !(s.lo > 0))
        out.load = outside(&s, o, &why);
    else
        out.load = inside(&s, o, &why);
    if (isnan(out.load) && s.again && (isinf(s.hi) || !(s.lo > 0)))
        out.load = s.again->load;
    return isnan(out.load) ? finish(out, why) : out;
}

knee_ratio knee_ratio_of(const knee_step *baseline, const knee_step *arm) {
    knee_ratio r = {(double)NAN, 0, (double)INFINITY};
    if (arm->lo > 0 && isfinite(baseline->hi))
        r.lo = arm->lo / baseline->hi;
    if (baseline->lo > 0 && isfinite(arm->hi))
        r.hi = arm->hi / baseline->lo;
    if (r.lo > 0 && isfinite(r.hi))
        r.ratio = sqrt(arm->lo * arm->hi) / sqrt(baseline->lo * baseline->hi);
    return r;
}
