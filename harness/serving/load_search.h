/* load_search.h - a sweep whose loads follow from what was measured: the search for the knees of
 * all arms (knee.h). At each load that is tried, all arms take their turns, so that they can be
 * compared there. A load that one arm asks for also serves the others. */
#ifndef SNAPMLA_HARNESS_SERVING_LOAD_SEARCH_H
#define SNAPMLA_HARNESS_SERVING_LOAD_SEARCH_H

#include "harness/serving/load_points.h"
#include "harness/serving/measured.h"

/* Turns of a search: at one load, and for each arm. */
enum { LOAD_SEARCH_TURNS_EACH = 3, LOAD_SEARCH_TURNS = 12 };

typedef struct {
    bool closed;        /* loads are numbers of users; else conversations per second */
    double least, most; /* 0 < least < most */
} load_range;

/* Parses "rate:0.5-16" or "concurrency:1-64". SNAP_E_USAGE. */
snap_status load_range_parse(const char *text, load_range *out, snap_err *err) SNAP_CHECK_RESULT;

/* The load point of a load of the range. */
load_point load_range_point(const load_range *range, double load, arrival_pattern gaps);

/**
 * load_search_next - the load to measure next
 *
 * @requests: [n] all requests so far, in any order
 * @turns:    [points] how often each load point was chosen. Point p of the requests has load[p]
 * @load:     [points]
 * @o:        with targets; `open` does not count
 * @next:     the load, which may be one that was measured before; NAN: the search is over, because
 *            each arm's knee is narrow enough or no turns are left
 *
 * The arms choose in turns. The result depends only on the arguments, so an interrupted search can
 * go on. Errors of serving_measure_point(). SNAP_E_NOMEM.
 */
snap_status load_search_next(const load_range *range, const serving_request *requests, size_t n,
                             const double *load, const int *turns, int points,
                             const serving_measure_options *o, double *next,
                             snap_err *err) SNAP_CHECK_RESULT;

#endif
