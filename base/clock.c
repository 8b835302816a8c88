#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

int64_t clock_now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_wall_offset_ns(void) {
    int64_t best_ns = INT64_MAX, offset = 0;
    /* the process may lose its processor between the two clocks; then they are read again */
    for (int i = 0; i < 4 && best_ns > 2000; i++) {
        struct timespec t;
        int64_t before = clock_now_ns();
        (void)clock_gettime(CLOCK_REALTIME, &t);
        int64_t took = clock_now_ns() - before;
        if (took < best_ns) {
            best_ns = took;
            offset = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - before - took / 2;
        }
    }
    return offset;
}

void clock_sleep_ns(int64_t ns) {
    if (ns <= 0)
        return;
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = (long)(ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR) {
    }
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int64_t first_ns; /* the monotonic clock at the first call of clock_utc(); first_wall: the
                            wall clock at that call */
static time_t first_wall;

static void read_clocks(void) {
    first_ns = clock_now_ns();
    first_wall = time(NULL);
}

void clock_utc(char out[21]) {
    (void)pthread_once(&once, read_clocks);
    time_t now = first_wall + (time_t)((clock_now_ns() - first_ns) / 1000000000);
    struct tm tm;
    (void)gmtime_r(&now, &tm);
    (void)strftime(out, 21, "%Y-%m-%dT%H:%M:%SZ", &tm);
}
