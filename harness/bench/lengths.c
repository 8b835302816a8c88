#include "harness/bench/lengths.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/text.h"
#include "kernels/mla.h"

static const double kMostSigma = 5;

static bool is_length(double x) {
    return x >= 1 && x <= (double)MLA_MAX_CONTEXT && x == floor(x);
}

/* ---- the option --lengths ---- */

/* Splits "x,y,z" or "x-y" into exactly @n numbers. */
static bool take_numbers(const char *text, char separator, double *out, int n) {
    char part[32];
    for (int i = 0; i < n; i++) {
        size_t len = strcspn(text, (const char[]){separator, '\0'});
        bool last = text[len] == '\0';
        if (len >= sizeof part || last != (i == n - 1))
            return false;
        (void)snprintf(part, sizeof part, "%.*s", (int)len, text);
        if (!text_to_double(part, &out[i]))
            return false;
        text += len + !last;
    }
    return true;
}

static snap_status refuse(const char *must, const char *text, snap_err *err) {
    return err_set(err, SNAP_E_USAGE, "--lengths: %s, got '%.80s'", must, text);
}

static snap_status parse_uniform(lengths_spec *s, const char *rest, snap_err *err) {
    double x[2];
    if (!take_numbers(rest, '-', x, 2) || !is_length(x[0]) || !is_length(x[1]) || x[0] > x[1])
        return refuse("uniform:LO-HI needs two lengths within 1..1048576, the lower first", rest,
                      err);
    s->kind = LENGTHS_UNIFORM;
    s->a = x[0];
    s->b = x[1];
    return SNAP_OK;
}

static snap_status parse_lognormal(lengths_spec *s, const char *rest, snap_err *err) {
    double x[2];
    if (!take_numbers(rest, ',', x, 2) || !is_length(x[0]) || !(x[1] >= 0 && x[1] <= kMostSigma))
        return refuse("lognormal:MEDIAN,SIGMA needs a length within 1..1048576 and a number within "
                      "0..5",
                      rest, err);
    s->kind = LENGTHS_LOGNORMAL;
    s->a = x[0];
    s->b = x[1];
    return SNAP_OK;
}

static snap_status parse_bimodal(lengths_spec *s, const char *rest, snap_err *err) {
    double x[3];
    if (!take_numbers(rest, ',', x, 3) || !is_length(x[0]) || !is_length(x[1]) ||
        !(x[2] >= 0 && x[2] <= 1))
        return refuse("bimodal:A,B,SHARE needs two lengths within 1..1048576 and a share within "
                      "0..1",
                      rest, err);
    s->kind = LENGTHS_BIMODAL;
    s->a = x[0];
    s->b = x[1];
    s->share = x[2];
    return SNAP_OK;
}

/* ---- a file ---- */

static snap_status add_line(lengths_spec *s, const char *path, const char *line, size_t n,
                            int64_t number, snap_err *err) {
    char text[24];
    int64_t v;
    if (text_is_blank(line, n))
        return SNAP_OK;
    if (s->n == LENGTHS_LINES)
        return err_set(err, SNAP_E_INPUT, "%s: more than %d lengths", path, LENGTHS_LINES);
    (void)snprintf(text, sizeof text, "%.*s", n < sizeof text ? (int)n : 0, line);
    if (!text_to_int(text, &v) || v < 1 || v > MLA_MAX_CONTEXT)
        return err_set(err, SNAP_E_INPUT,
                       "%s:%lld: a line must be a length within 1..%lld, got '%.*s'", path,
                       (long long)number, (long long)MLA_MAX_CONTEXT, n < 40 ? (int)n : 40, line);
    s->lines[s->n++] = (int32_t)v;
    return SNAP_OK;
}

static snap_status read_lines(lengths_spec *s, const char *path, const buf *data, snap_err *err) {
    const char *at = buf_str(data);
    snap_status st = SNAP_OK;
    size_t lines = 1;
    if (strlen(at) != data->len)
        return err_set(err, SNAP_E_INPUT, "%s: the file has a NUL byte", path);
    for (size_t i = 0; i < data->len; i++)
        lines += at[i] == '\n';
    s->lines = malloc((lines < LENGTHS_LINES ? lines : LENGTHS_LINES) * sizeof *s->lines);
    if (!s->lines)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %zu lengths", lines);
    for (int64_t number = 1; *at && st == SNAP_OK; number++) {
        size_t n = strcspn(at, "\n"), cut = n && at[n - 1] == '\r' ? n - 1 : n;
        st = add_line(s, path, at, cut, number, err);
        at += n + (at[n] == '\n');
    }
    if (st == SNAP_OK && !s->n)
        st = err_set(err, SNAP_E_INPUT, "%s: no line has a length", path);
    return st;
}

static snap_status read_file(lengths_spec *s, const char *path, snap_err *err) {
    const char *slash = strrchr(path, '/');
    buf data = {0};
    char hex[HASH_HEX];
    snap_status st = SNAP_OK;
    s->kind = LENGTHS_FILE;
    TRY(fs_read(path, &data, err));
    TRY(read_lines(s, path, &data, err));
    TRY(hash_bytes(data.data, data.len, hex, err));
    (void)snprintf(s->text, sizeof s->text, "%.100s sha256 %.16s", slash ? slash + 1 : path, hex);
cleanup:
    buf_release(&data);
    return st;
}

snap_status lengths_parse(lengths_spec *out, const char *text, snap_err *err) {
    static const struct {
        const char *prefix;
        snap_status (*parse)(lengths_spec *s, const char *rest, snap_err *err);
    } kinds[] = {
        {"uniform:", parse_uniform}, {"lognormal:", parse_lognormal}, {"bimodal:", parse_bimodal}};
    *out = (lengths_spec){0};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (text_starts(text, kinds[i].prefix)) {
            (void)snprintf(out->text, sizeof out->text, "%s", text);
            return kinds[i].parse(out, text + strlen(kinds[i].prefix), err);
        }
    snap_status st = read_file(out, text, err);
    if (st == SNAP_E_IO)
        err_prefix(err, "--lengths must be uniform:LO-HI, lognormal:MEDIAN,SIGMA, "
                        "bimodal:A,B,SHARE or a file");
    return st;
}

void lengths_release(lengths_spec *s) {
    free(s->lines);
    *s = (lengths_spec){0};
}

/* ---- drawing lengths ---- */

static double draw_one(const lengths_spec *s, rng *r) {
    switch (s->kind) {
    case LENGTHS_UNIFORM:
        return s->a + rng_below(r, (uint32_t)(s->b - s->a) + 1);
    case LENGTHS_LOGNORMAL:
        return s->a * exp(s->b * rng_normal(r));
    case LENGTHS_BIMODAL:
        return rng_uniform(r) < s->share ? s->a : s->b;
    default:
        return s->lines[rng_below(r, (uint32_t)s->n)];
    }
}

int64_t lengths_draw(const lengths_spec *s, uint64_t seed, int batch, int32_t *out) {
    rng r = rng_make(seed, rng_stream_of("bench lengths"));
    int64_t longest = 0;
    for (int b = 0; b < batch; b++) {
        double x = fmin(fmax(round(draw_one(s, &r)), 1), (double)MLA_MAX_CONTEXT);
        out[b] = (int32_t)x;
        longest = out[b] > longest ? out[b] : longest;
    }
    return longest;
}
