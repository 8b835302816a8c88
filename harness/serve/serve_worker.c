#include "harness/serve/serve_worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    serve_task *first, **end;
} task_list;

struct serve_worker {
    int wake;
    int64_t most;
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t work;
    task_list waiting, done;
    int64_t bytes;
    int pending;
    bool stop;
};

static void append(task_list *l, serve_task *t) {
    t->next = NULL;
    *l->end = t;
    l->end = &t->next;
}

/* Takes the task off that @at points to. */
static serve_task *take(task_list *l, serve_task **at) {
    serve_task *t = *at;
    *at = t->next;
    if (l->end == &t->next)
        l->end = at;
    return t;
}

static void *run(void *ctx) {
    serve_worker *w = ctx;
    const uint64_t one = 1;
    (void)pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        if (!w->waiting.first) {
            (void)pthread_cond_wait(&w->work, &w->lock);
            continue;
        }
        serve_task *t = take(&w->waiting, &w->waiting.first);
        (void)pthread_mutex_unlock(&w->lock);
        t->run(t);
        (void)pthread_mutex_lock(&w->lock);
        append(&w->done, t);
        w->pending--;
        if (write(w->wake, &one, sizeof one) < 0) {
            /* The write fails only if the counter of the eventfd is full. Then the server's thread
             * has not read it yet, and will wake up. */
        }
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

bool serve_worker_put(serve_worker *w, serve_task *t) {
    (void)pthread_mutex_lock(&w->lock);
    bool fits = !w->bytes || w->bytes + t->bytes <= w->most;
    if (fits) {
        append(&w->waiting, t);
        w->bytes += t->bytes;
        w->pending++;
        (void)pthread_cond_signal(&w->work);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return fits;
}

bool serve_worker_take_back(serve_worker *w, serve_task *t) {
    (void)pthread_mutex_lock(&w->lock);
    serve_task **at = &w->waiting.first;
    while (*at && *at != t)
        at = &(*at)->next;
    bool found = *at != NULL;
    if (found) {
        (void)take(&w->waiting, at);
        w->bytes -= t->bytes;
        w->pending--;
    }
    (void)pthread_mutex_unlock(&w->lock);
    return found;
}

serve_task *serve_worker_collect(serve_worker *w) {
    serve_task *t = NULL;
    (void)pthread_mutex_lock(&w->lock);
    if (w->done.first) {
        t = take(&w->done, &w->done.first);
        w->bytes -= t->bytes;
    }
    (void)pthread_mutex_unlock(&w->lock);
    return t;
}

int serve_worker_pending(serve_worker *w) {
    (void)pthread_mutex_lock(&w->lock);
    int n = w->pending;
    (void)pthread_mutex_unlock(&w->lock);
    return n;
}

snap_status serve_worker_start(serve_worker **out, int wake, int64_t most, snap_err *err) {
    serve_worker *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a server");
    w->wake = wake;
    w->most = most;
    w->waiting.end = &w->waiting.first;
    w->done.end = &w->done.first;
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->work, NULL);
    if (pthread_create(&w->thread, NULL, run, w) != 0) {
        free(w);
        return err_set(err, SNAP_E_IO,
                       "cannot start the thread that reads large requests: there is too little "
                       "memory, or there are too many threads");
    }
    *out = w;
    return SNAP_OK;
}

void serve_worker_stop(serve_worker *w) {
    if (!w)
        return;
    (void)pthread_mutex_lock(&w->lock);
    w->stop = true;
    (void)pthread_cond_signal(&w->work);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    (void)pthread_mutex_destroy(&w->lock);
    (void)pthread_cond_destroy(&w->work);
    free(w);
}
