#include "harness/bench/together.h"

#include <sched.h>

#include "base/clock.h"

static const int64_t kClocksMost = 5000000; /* ns; a larger difference is that of two clocks */

typedef struct {
    double ns;
    int64_t now;
} message;

int64_t together_start(int64_t now, int64_t latest) {
    return latest - now < kClocksMost ? latest + TOGETHER_LEAD_NS : now;
}

snap_status together_meet(ranks *group, double mine, double *ns, snap_err *err) {
    message all[RANKS_MOST], own = {mine, clock_now_ns()};
    int64_t latest = own.now;
    ns[0] = mine;
    if (!group)
        return SNAP_OK;
    snap_status st = ranks_all_gather(group, "the beginning of a step", &own, sizeof own, all, err);
    for (int r = 0; r < ranks_size(group) && st == SNAP_OK; r++) {
        ns[r] = all[r].ns;
        latest = all[r].now > latest ? all[r].now : latest;
    }
    while (st == SNAP_OK && clock_now_ns() < together_start(own.now, latest))
        (void)sched_yield();
    return st;
}
