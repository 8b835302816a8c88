#include "harness/measure/env.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/text.h"

static const double kClockLoss = 0.10; /* relative drop of the clock that counts as throttled */
static const double kSharedLoad =
    0.10; /* least load by others, in processors, that counts as shared */

double env_parse_mhz(const char *cpuinfo) {
    double sum = 0;
    int n = 0;
    for (const char *at = cpuinfo; (at = strstr(at, "cpu MHz")); at++) {
        const char *colon = strchr(at, ':');
        if (!colon)
            break;
        sum += strtod(colon + 1, NULL);
        n++;
    }
    return n ? sum / n : (double)NAN;
}

bool env_parse_stat(const char *stat, double *busy_ticks, double *steal_ticks) {
    double user, nice, system, idle, iowait, irq, softirq;
    if (sscanf(stat, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &iowait,
               &irq, &softirq, steal_ticks) != 8)
        return false;
    *busy_ticks = user + nice + system + irq + softirq + *steal_ticks;
    return true;
}

static bool read_text(const char *path, buf *out) {
    return fs_exists(path) && fs_read(path, out, NULL) == SNAP_OK;
}

static double clock_mhz(void) {
    buf text = {0};
    double mhz = (double)NAN;
    int64_t khz;
    if (read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", &text)) {
        text.data[strcspn(text.data, "\n")] = '\0';
        if (text_to_int(text.data, &khz))
            mhz = (double)khz / 1e3;
    } else if (read_text("/proc/cpuinfo", &text)) {
        mhz = env_parse_mhz(buf_str(&text));
    }
    buf_release(&text);
    return mhz;
}

static int64_t throttle_events(void) {
    buf text = {0};
    int64_t n = -1;
    if (read_text("/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", &text)) {
        text.data[strcspn(text.data, "\n")] = '\0';
        if (!text_to_int(text.data, &n))
            n = -1;
    }
    buf_release(&text);
    return n;
}

static double own_seconds(void) {
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

env_state env_now(void) {
    env_state s = {.mhz = clock_mhz(),
                   .throttles = throttle_events(),
                   .busy_s = (double)NAN,
                   .steal_s = (double)NAN,
                   .own_s = own_seconds(),
                   .wall_s = (double)clock_now_ns() / 1e9};
    buf text = {0};
    double ticks = (double)sysconf(_SC_CLK_TCK);
    if (read_text("/proc/stat", &text) && env_parse_stat(buf_str(&text), &s.busy_s, &s.steal_s)) {
        s.busy_s /= ticks;
        s.steal_s /= ticks;
    }
    buf_release(&text);
    return s;
}

env_flags env_between(const env_state *before, const env_state *after) {
    double wall = after->wall_s - before->wall_s;
    double others = (after->busy_s - before->busy_s) - (after->own_s - before->own_s);
    /* Comparisons with NAN are false, so an unknown value sets no flag. */
    return (env_flags){
        .throttled =
            after->throttles > before->throttles ||
            after->mhz<(1 - kClockLoss) * before->mhz, .shared = others> kSharedLoad * wall &&
                others > 0.05};
}
