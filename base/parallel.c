#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

/* kSpinPolls: how many times an idle worker polls before it sleeps, and how many times a caller
 * polls before it lets other threads run. Builds with a sanitizer are not measured. In them a poll
 * takes several times as long, and tests run beside others, so they poll less. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { kSpinPolls = 100 };
#else
enum { kSpinPolls = 20000 };
#endif
enum { kMaxThreads = 1024 };

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

struct parallel {
    int threads;
    pthread_t *ids; /* [threads - 1] */
    int started;
    parallel_fn fn;
    void *ctx;
    int64_t count;
    atomic_llong next; /* next index to process */
    atomic_int busy;   /* workers that have not finished the current parallel_for(); worker 0 is not
                          counted */
    atomic_uint epoch; /* changes to start the workers, or to end them if `stop` is set */
    atomic_bool stop;
    atomic_int next_worker;
    pthread_mutex_t lock; /* guards the sleep of idle workers */
    pthread_cond_t wake;
};

int parallel_cpus(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n > 0 ? n : 1;
}

static void work(parallel *p, int worker) {
    for (;;) {
        int64_t i = atomic_fetch_add(&p->next, 1);
        if (i >= p->count)
            return;
        p->fn(p->ctx, worker, i);
    }
}

static void wait_epoch(parallel *p, unsigned seen) {
    for (int i = 0; i < kSpinPolls; i++) {
        if (atomic_load(&p->epoch) != seen)
            return;
        relax();
    }
    (void)pthread_mutex_lock(&p->lock);
    while (atomic_load(&p->epoch) == seen)
        (void)pthread_cond_wait(&p->wake, &p->lock);
    (void)pthread_mutex_unlock(&p->lock);
}

static void *worker_main(void *arg) {
    parallel *p = arg;
    int worker = atomic_fetch_add(&p->next_worker, 1);
    for (unsigned seen = 0;; seen++) {
        wait_epoch(p, seen);
        if (atomic_load(&p->stop))
            return NULL;
        work(p, worker);
        atomic_fetch_sub(&p->busy, 1);
    }
}

static void new_epoch(parallel *p) {
    (void)pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->epoch, 1);
    (void)pthread_cond_broadcast(&p->wake);
    (void)pthread_mutex_unlock(&p->lock);
}

/* Pins a worker to a processor that no other worker of the pool is pinned to. Without this, the
 * caller and a worker may share one processor for the whole of a short call. A worker for which no
 * processor is left is not pinned. The caller is not pinned either, because threads that it starts
 * later would inherit that. */
static void place(pthread_t thread, int worker) {
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) <= worker)
        return;
    int seen = 0;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && seen++ == worker) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            (void)pthread_setaffinity_np(thread, sizeof one, &one);
            return;
        }
}

static snap_status start_workers(parallel *p, snap_err *err) {
    p->ids = calloc((size_t)p->threads, sizeof *p->ids);
    if (!p->ids)
        return err_set(err, SNAP_E_NOMEM, "out of memory for threads");
    for (; p->started < p->threads - 1; p->started++) {
        if (pthread_create(&p->ids[p->started], NULL, worker_main, p) != 0)
            return err_set(
                err, SNAP_E_NOMEM,
                "cannot start thread %d of %d: memory or the limit on threads is exhausted",
                p->started + 2, p->threads);
        place(p->ids[p->started], p->started + 1);
    }
    return SNAP_OK;
}

snap_status parallel_create(parallel **out, int threads, snap_err *err) {
    *out = NULL;
    if (threads < 0 || threads > kMaxThreads)
        return err_set(err, SNAP_E_USAGE, "threads must be 0..%d, got '%d'", kMaxThreads, threads);
    parallel *p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a thread pool");
    p->threads = threads ? threads : parallel_cpus();
    atomic_store(&p->next_worker, 1);
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->wake, NULL);
    snap_status st = start_workers(p, err);
    if (st == SNAP_OK)
        *out = p;
    else
        parallel_free(p);
    return st;
}

void parallel_free(parallel *p) {
    if (!p)
        return;
    atomic_store(&p->stop, true);
    new_epoch(p);
    for (int i = 0; i < p->started; i++)
        (void)pthread_join(p->ids[i], NULL);
    (void)pthread_cond_destroy(&p->wake);
    (void)pthread_mutex_destroy(&p->lock);
    free(p->ids);
    free(p);
}

int parallel_threads(const parallel *p) {
    return p->threads;
}

void parallel_for(parallel *p, int64_t count, parallel_fn fn, void *ctx) {
    if (count <= 1) { /* no worker needs to wake up */
        if (count == 1)
            fn(ctx, 0, 0);
        return;
    }
    p->fn = fn;
    p->ctx = ctx;
    p->count = count;
    atomic_store(&p->next, 0);
    atomic_store(&p->busy, p->threads - 1);
    if (p->threads > 1)
        new_epoch(p);
    work(p, 0);
    for (int polls = 0; atomic_load(&p->busy) > 0;)
        if (polls < kSpinPolls) {
            polls++;
            relax();
        } else {
            (void)sched_yield(); /* a worker may wait for this processor */
        }
}
