/* sweep_limit.c - the time limit of a sweep. */
#include "base/clock.h"
#include "harness/bench/sweep_inside.h"
#include "harness/measure/stats.h"

/* The fewest steps of an arm: one to check and three to check again; in turns, one to warm up and
 * two samples; in each of two loops, three to find the length of a sample and two for a sample. */
enum { kFewestInTurns = 7, kFewestInLoops = 14 };

static double work_of(const sweep *s) {
    return (double)s->shape.heads * s->shape.s_q * (double)bench_shape_tokens(&s->shape);
}

void sweep_note_speed(sweep *s) {
    for (int i = 0; i < s->n; i++) {
        lane *l = &s->lanes[i];
        const stop_rule *t = &l->cell.timing;
        if (l->cell.status != ROW_PASSED || !t->n)
            continue;
        double ns = stats_quantile(t->sorted, t->n, 0.5) / work_of(s);
        if (l->ns_per_work == 0 || ns < l->ns_per_work)
            l->ns_per_work = ns;
    }
}

bool sweep_is_late(const sweep *s, snap_err *why) {
    double needed = 0, left = s->opt->limit_s - (double)(clock_now_ns() - s->started) / 1e9;
    const int steps = s->opt->sustained_s > 0 ? kFewestInLoops : kFewestInTurns;
    if (!(s->opt->limit_s > 0))
        return false;
    for (int i = 0; i < s->n; i++)
        needed += steps * s->lanes[i].ns_per_work * work_of(s) / 1e9 + 2 * s->opt->sustained_s;
    if (left > 0 && needed <= left)
        return false;
    (void)err_set(why, SNAP_E_CANCELLED, /* a resumed run then measures it */
                  CELL_LEFT_OUT
                  "it would take %.3g s or more, and %.3g s are left of the time limit "
                  "of %.3g s",
                  needed, left > 0 ? left : 0, s->opt->limit_s);
    return true;
}
