#include "generator/local/watchdog.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

static const double kTick = 0.1; /* seconds */

struct watchdog {
    char name[96];
    double limit_s;
    void (*end)(const snap_err *why);
    int free_steps;      /* steps without a limit that are left */
    atomic_int left;     /* ticks until the limit; 0 = nothing is running, or it has no limit */
    atomic_bool copying; /* a copy of a page is running, and not a step */
    atomic_bool stop;
    pthread_t thread;
};

/* Counts its own ticks instead of comparing times, so a process that was stopped goes on with the
 * time that was left. */
static void *watch(void *ctx) {
    watchdog *w = ctx;
    while (!atomic_load(&w->stop)) {
        clock_sleep_ns((int64_t)(kTick * 1e9));
        int left = atomic_load(&w->left);
        if (left > 0 && atomic_compare_exchange_strong(&w->left, &left, left - 1) && left == 1) {
            snap_err why = {0};
            (void)err_set(
                &why, SNAP_E_DEVICE,
                "%s: a %s did not end within %g s: the GPU hangs, or is too slow", w->name,
                atomic_load(&w->copying) ? "copy of a page of the cache" : "step", w->limit_s);
            w->end(&why);
        }
    }
    return NULL;
}

snap_status watchdog_start(watchdog **out, const char *name, double limit_s,
                           void (*end)(const snap_err *why), snap_err *err) {
    watchdog *w = *out = calloc(1, sizeof *w);
    if (!w)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a watchdog");
    *w = (watchdog){.limit_s = limit_s, .end = end, .free_steps = WATCHDOG_FREE};
    (void)snprintf(w->name, sizeof w->name, "%s", name);
    if (pthread_create(&w->thread, NULL, watch, w) == 0)
        return SNAP_OK;
    free(w);
    *out = NULL;
    return err_set(err, SNAP_E_IO, "cannot start the thread of a watchdog");
}

void watchdog_stop(watchdog *w) {
    if (!w)
        return;
    atomic_store(&w->stop, true);
    (void)pthread_join(w->thread, NULL);
    free(w);
}

static void begin(watchdog *w, bool copying) {
    atomic_store(&w->copying, copying);
    atomic_store(&w->left, (int)(w->limit_s / kTick) + 1);
}

void watchdog_begin_step(watchdog *w) {
    if (w && w->free_steps > 0)
        w->free_steps--;
    else if (w)
        begin(w, false);
}

void watchdog_begin_copy(watchdog *w) {
    if (w)
        begin(w, true);
}

void watchdog_end(watchdog *w) {
    if (w)
        atomic_store(&w->left, 0);
}
