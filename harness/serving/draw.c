#include "harness/serving/draw.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/rng.h"
#include "base/text.h"

enum { kMostNumbers = 1 << 22, kMostBytes = 64 << 20 };

/* ---- parsing ---- */

/* Parses two numbers with a separator between them. If that is '-', the first must not be
 * negative. */
static bool two(const char *text, char separator, double *a, double *b) {
    char first[40];
    const char *at = strchr(text, separator);
    size_t n = at ? (size_t)(at - text) : 0;
    if (!n || n >= sizeof first)
        return false;
    memcpy(first, text, n);
    first[n] = '\0';
    return text_to_double(first, a) && text_to_double(at + 1, b);
}

static bool in_range(const draw *d, double x) {
    return x >= d->min && x <= d->max;
}

static snap_status refuse_line(const char *path, long line, const draw *d, snap_err *err) {
    return err_set(err, SNAP_E_INPUT, "%s:%ld: a line must be one number from %g to %g", path, line,
                   d->min, d->max);
}

/* Parses the lines of @text, which is changed. */
static snap_status parse_lines(char *text, const char *path, double *list, draw *d, snap_err *err) {
    long line = 0;
    for (char *at = text; at && *at;) {
        char *end = strchr(at, '\n');
        if (end)
            *end = '\0';
        line++;
        at[strcspn(at, "\r")] = '\0';
        if (*at && (!text_to_double(at, &list[d->n]) || !in_range(d, list[d->n++])))
            return refuse_line(path, line, d, err);
        at = end ? end + 1 : NULL;
    }
    return d->n ? SNAP_OK : err_set(err, SNAP_E_INPUT, "'%s' has no numbers", path);
}

static snap_status read_file(const char *path, arena *mem, draw *d, snap_err *err) {
    buf text = {.limit = kMostBytes};
    size_t lines = 1;
    double *list;
    snap_status st;
    TRY(fs_read_regular(path, &text, err));
    if (strlen(buf_str(&text)) != text.len)
        TRY(err_set(err, SNAP_E_INPUT, "'%s' has a NUL byte: it must be a text of numbers", path));
    for (size_t i = 0; i < text.len; i++)
        lines += text.data[i] == '\n';
    if (lines > kMostNumbers)
        TRY(err_set(err, SNAP_E_INPUT, "'%s' has more than %d lines", path, (int)kMostNumbers));
    list = arena_alloc(mem, lines, sizeof *list);
    TRY(list ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", path));
    d->list = list;
    if (text.len)
        TRY(parse_lines(text.data, path, list, d, err));
    else
        TRY(err_set(err, SNAP_E_INPUT, "'%s' is empty", path));
cleanup:
    buf_release(&text);
    return st;
}

/* Parses all forms but file:PATH. */
static bool parse_formula(const char *text, draw *d) {
    if (text_to_double(text, &d->a)) {
        d->kind = DRAW_FIXED;
        return in_range(d, d->a);
    }
    if (text_starts(text, "uniform:")) {
        d->kind = DRAW_UNIFORM;
        return two(text + 8, '-', &d->a, &d->b) && in_range(d, d->a) && in_range(d, d->b) &&
               d->a <= d->b;
    }
    if (text_starts(text, "lognormal:")) {
        d->kind = DRAW_LOGNORMAL;
        return two(text + 10, ':', &d->a, &d->b) && in_range(d, d->a) && d->a > 0 && d->b >= 0 &&
               d->b <= 10;
    }
    d->kind = DRAW_EXPONENTIAL;
    return text_starts(text, "exponential:") && text_to_double(text + 12, &d->a) &&
           in_range(d, d->a);
}

snap_status draw_parse(const char *flag, const char *text, double min, double max, arena *mem,
                       draw *out, snap_err *err) {
    *out = (draw){.min = min, .max = max};
    if (text_starts(text, "file:")) {
        out->kind = DRAW_FILE;
        return read_file(text + 5, mem, out, err);
    }
    if (parse_formula(text, out))
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE,
                   "%s '%s' must be a number, uniform:A-B, lognormal:MEDIAN:SIGMA, "
                   "exponential:MEAN or file:PATH, with numbers from %g to %g",
                   flag, text, min, max);
}

/* ---- drawing a length ---- */

enum { kStep = 4 }; /* blocks of random bits that are reserved for each number */

static rng random_of(uint64_t seed, uint64_t stream, uint64_t index) {
    rng r = rng_make(seed, stream);
    r.counter = index * kStep;
    return r;
}

static double clamp(const draw *d, double x) {
    return x < d->min ? d->min : x > d->max ? d->max : x;
}

double draw_at(const draw *d, uint64_t seed, uint64_t stream, uint64_t index) {
    rng r = random_of(seed, stream, index);
    switch (d->kind) {
    case DRAW_UNIFORM:
        return d->a + (d->b - d->a) * rng_uniform(&r);
    case DRAW_LOGNORMAL:
        return clamp(d, d->a * exp(d->b * rng_normal(&r)));
    case DRAW_EXPONENTIAL:
        return clamp(d, -d->a * log(1 - rng_uniform(&r)));
    case DRAW_FILE:
        return d->list[rng_below(&r, (uint32_t)d->n)];
    default:
        return d->a;
    }
}

int64_t draw_length(const draw *d, uint64_t seed, uint64_t stream, uint64_t index) {
    if (d->kind != DRAW_UNIFORM)
        return llround(draw_at(d, seed, stream, index));
    rng r = random_of(seed, stream, index);
    double low = ceil(d->a), high = floor(d->b);
    double x = low + floor((high - low + 1) * rng_uniform(&r));
    return llround(x > high ? high : x);
}
