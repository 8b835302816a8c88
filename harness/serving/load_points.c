#include "harness/serving/load_points.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const double kLeastRate = 1e-4, kMostRate = 1e6;

typedef struct {
    load_points *out;
    arrival_pattern pattern;
} parsing;

static snap_status add(parsing *p, load_point point, snap_err *err) {
    if (p->out->n == LOAD_POINTS_MAX)
        return err_set(err, SNAP_E_USAGE, "more than %d load points", (int)LOAD_POINTS_MAX);
    point.load.pattern = p->pattern;
    p->out->at[p->out->n++] = point;
    return SNAP_OK;
}

static snap_status add_concurrency(void *ctx, const char *part, snap_err *err) {
    load_point point = {0};
    if (!text_to_int(part, &point.load.users) || point.load.users < 1 ||
        point.load.users > BLOCK_IN_FLIGHT_MAX)
        return err_set(err, SNAP_E_USAGE, "--concurrency: '%s' must be a whole number from 1 to %d",
                       part, (int)BLOCK_IN_FLIGHT_MAX);
    (void)snprintf(point.name, sizeof point.name, "concurrency %s", part);
    return add(ctx, point, err);
}

static bool is_rate(const char *text, double *out) {
    return text_to_double(text, out) && *out >= kLeastRate && *out <= kMostRate;
}

static snap_status refuse_rate(const char *flag, const char *part, snap_err *err) {
    return err_set(err, SNAP_E_USAGE, "%s: '%s' must be from %g to %g", flag, part, kLeastRate,
                   kMostRate);
}

static snap_status add_rate(void *ctx, const char *part, snap_err *err) {
    load_point point = {0};
    if (!is_rate(part, &point.load.rate))
        return refuse_rate("--rate", part, err);
    (void)snprintf(point.name, sizeof point.name, "rate %.40s", part);
    return add(ctx, point, err);
}

static snap_status add_speed(void *ctx, const char *part, snap_err *err) {
    load_point point = {0};
    if (!is_rate(part, &point.load.speed))
        return refuse_rate("--speed", part, err);
    (void)snprintf(point.name, sizeof point.name, "trace x%.40s", part);
    return add(ctx, point, err);
}

static snap_status add_ramp(parsing *p, const char *text, snap_err *err) {
    load_point point = {0};
    char from[24];
    size_t n = strcspn(text, "-");
    if (!text[n] || n >= sizeof from)
        return err_set(err, SNAP_E_USAGE, "--ramp '%s' must be two rates, for example 1-8", text);
    memcpy(from, text, n);
    from[n] = '\0';
    if (!is_rate(from, &point.load.from_rate) || !is_rate(text + n + 1, &point.load.rate))
        return refuse_rate("--ramp", text, err);
    (void)snprintf(point.name, sizeof point.name, "ramp %.40s", text);
    return add(p, point, err);
}

snap_status load_points_parse(const char *concurrency, const char *rate, const char *ramp,
                              const char *speed, const char *shape, load_points *out,
                              snap_err *err) {
    parsing p = {.out = out};
    *out = (load_points){0};
    snap_status st = arrival_pattern_parse(shape ? shape : "poisson", &p.pattern, err);
    if (st == SNAP_OK && concurrency)
        st = text_split(concurrency, ',', "--concurrency", add_concurrency, &p, err);
    if (st == SNAP_OK && rate)
        st = text_split(rate, ',', "--rate", add_rate, &p, err);
    if (st == SNAP_OK && ramp)
        st = add_ramp(&p, ramp, err);
    if (st == SNAP_OK && speed)
        st = text_split(speed, ',', "--speed", add_speed, &p, err);
    if (st == SNAP_OK && !out->n)
        st = err_set(
            err, SNAP_E_USAGE,
            "no load is given: use --concurrency, --rate, --ramp, --search, or --trace with "
            "--speed");
    return st;
}
