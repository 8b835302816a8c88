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
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - clock_now_ns();
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
