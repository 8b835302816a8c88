/* load_search.h - a sweep whose loads follow from what was measured: the search for the knees of
 * all arms (knee.h). At each load that is tried, all arms take their turns, so that they can be
 * compared there. A load that is chosen for one arm is measured with all.
 *
 *   while (!isnan(load = load_search_next(&search))) {
 *       load_search_choose(&search, load);
 *       ... run the blocks of all arms at that load ...
 *       load_search_add(&search, new_requests, n, &err);
 *   }
 *
 * load_search_add() evaluates only the load points that have new requests. */
#ifndef SNAPMLA_HARNESS_SERVING_LOAD_SEARCH_H
#define SNAPMLA_HARNESS_SERVING_LOAD_SEARCH_H

#include "harness/serving/knee.h"
#include "harness/serving/load_points.h"
#include "harness/serving/measured.h"
#include "harness/serving/request_lines.h"

/* Most turns of a search: at one load; of the whole search, for each arm. */
enum { LOAD_SEARCH_TURNS_EACH = 3, LOAD_SEARCH_TURNS = 12 };

typedef struct {
    bool closed;        /* loads are numbers of users; else conversations per second */
    double least, most; /* 0 < least < most */
} load_range;

/* Parses "rate:0.5-16" or "concurrency:1-64". SNAP_E_USAGE. */
snap_status load_range_parse(const char *text, load_range *out, snap_err *err) SNAP_CHECK_RESULT;

/* The load point of a load of the range. */
load_point load_range_point(const load_range *range, double load, arrival_pattern gaps);

typedef struct {
    load_range range;
    serving_measure_options options; /* how load points are evaluated, with the targets */
    int n;                           /* number of load points */
    double load[LOAD_POINTS_MAX];
    int turns[LOAD_POINTS_MAX];                          /* how often each load was chosen */
    int choices;                                         /* number of turns at all loads together */
    request_list requests[LOAD_POINTS_MAX];              /* requests of each load point; owned */
    knee_point known[SERVING_ARMS_MAX][LOAD_POINTS_MAX]; /* what is known, by arm and load point */
    size_t measured; /* requests evaluated so far; a request counts each time that its load point is
                        evaluated */
} load_search;

/* A search without loads. @o: has the targets; `open` is ignored. Release it with
 * load_search_release(). */
load_search load_search_make(const load_range *range, const serving_measure_options *o);
void load_search_release(load_search *s);

/* The load to measure next, which may be one that was measured before. NAN: the search is over for
 * each arm (knee_step.why) or has no turns left. The arms choose in turns. The result depends only
 * on the loads that were chosen and on their requests, so an interrupted search can go on. */
double load_search_next(const load_search *s);

/* Notes that a load was chosen. Returns the number of its load point; -1: there are too many. */
int load_search_choose(load_search *s, double load);

/* Copies new requests, and evaluates their load points if each arm has requests there. Errors of
 * serving_measure_point(), and SNAP_E_INPUT for a request of a load point that was not chosen.
 * SNAP_E_NOMEM. */
snap_status load_search_add(load_search *s, const serving_request *requests, size_t n,
                            snap_err *err) SNAP_CHECK_RESULT;

#endif
