#include "harness/bench/predict_routing.h"

#include <math.h>

#include "generator/local/model/route.h"

double predict_experts(double here, double all, double chosen, double rows) {
    return all > 0 ? here * (1 - pow(1 - chosen / all, rows)) : 0;
}

/* The expected largest one of @n independent numbers with the standard normal distribution: the
 * integral of 1 - F(x)^n over x > 0, less that of F(x)^n over x < 0. */
static double largest_of(int n) {
    enum { kEnd = 8, kSteps = 64 }; /* end of the integral; steps for each 1 */
    double sum = 0;
    for (int i = -kEnd * kSteps; i < kEnd * kSteps; i++) {
        double x = (i + 0.5) / kSteps;
        sum += (x > 0) - pow(erfc(-x * sqrt(0.5)) / 2, n);
    }
    return sum / kSteps;
}

/* The probability that a row chooses neither of two experts, which are in the same group or in
 * different groups. A row chooses from the experts of the groups that it keeps. */
typedef struct {
    double same, different;
} neither_chosen;

static neither_chosen neither_of(const router *r) {
    double groups = r->groups, kept = r->groups_kept, others = groups - kept, k = r->chosen,
           pool = r->experts * kept / groups, one = (pool - k) / pool,
           both = one * (pool - k - 1) / fmax(1, pool - 1),
           different = kept * (kept - 1) * both + 2 * kept * others * one + others * (others - 1);
    return (neither_chosen){(kept * both + others) / groups,
                            different / fmax(1, groups * (groups - 1))};
}

/* The share of the ways to take @some of @all things that leave out @without of them. */
static double share_without(double all, double without, int some) {
    double share = 1;
    for (int i = 0; i < some; i++)
        share *= fmax(0, all - without - i) / (all - i);
    return share;
}

enum { kMostGroups = 1 << 10 }; /* the largest n_group that model_shape_parse() accepts */

/* The number of groups with experts of the rank that a row keeps has a hypergeometric distribution.
 * share[k] is the probability that it is k, after each group of the rank in turn. */
double predict_reach(const model_shape *s, double here) {
    const router r = router_make(s);
    double group = r.experts / (double)r.groups, near = fmin(group, here),
           pool = r.experts * (double)r.groups_kept / r.groups, missed = 0;
    int of = (int)ceil(here / group);
    double share[kMostGroups + 1] = {1};
    if (here <= 0)
        return 0;
    for (int i = 0; i < of && i < r.groups; i++)
        for (int k = i + 1; k >= 0; k--) {
            double kept = k <= i ? share[k] * (r.groups - r.groups_kept - (i - k)) : 0,
                   more = k > 0 ? share[k - 1] * (r.groups_kept - (k - 1)) : 0;
            share[k] = (fmax(0, kept) + fmax(0, more)) / (r.groups - i);
        }
    for (int k = 0; k <= of && k <= r.groups_kept; k++)
        missed += share[k] * share_without(pool, k * near, r.chosen);
    return 1 - missed;
}

/* Let X be the number of chosen experts on a rank. If the ranks have equal correlations, the
 * expected largest X is the mean + sqrt(variance - covariance) x the expected largest one of as
 * many independent standard normal numbers. Both are sums over pairs of experts, of which one is on
 * the rank. The covariance is the mean over all other ranks. */
double predict_busiest_rank(const model_shape *s, int ranks, double rows) {
    const router r = router_make(s);
    double here = s->n_routed_experts / (double)ranks, away = s->n_routed_experts - here,
           group = r.experts / (double)r.groups, near = fmin(group, here),
           near_away = fmin(group - near, away);
    if (ranks < 2 || here <= 0)
        return 0;
    neither_chosen of_row = neither_of(&r);
    double missed = pow(1 - r.chosen / (double)r.experts, rows),
           same = pow(of_row.same, rows) - missed * missed,
           different = pow(of_row.different, rows) - missed * missed,
           variance = missed * (1 - missed) + (near - 1) * same + (here - near) * different,
           covariance = (near_away * same + (away - near_away) * different) * here / away;
    return fmin(sqrt(fmax(0, here * (variance - covariance))) * largest_of(ranks), here * missed);
}
