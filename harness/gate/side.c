#include "harness/gate/side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/text.h"
#include "harness/bench/kind.h"

typedef struct {
    gate_side *arm;
    bool first;
} reader;

static snap_status put(char *to, size_t size, const char *key, const char *value, snap_err *err) {
    if (strlen(value) >= size || !value[0])
        return err_set(err, SNAP_E_USAGE, "an arm's %s must have 1 to %zu characters", key,
                       size - 1);
    (void)snprintf(to, size, "%s", value);
    return SNAP_OK;
}

static snap_status put_number(const char *key, const char *value, double high, double *out,
                              snap_err *err) {
    if (!text_to_double(value, out) || *out < 0 || *out > high)
        return err_set(err, SNAP_E_USAGE, "an arm's %s must be a number within 0..%g, got '%s'",
                       key, high, value);
    return SNAP_OK;
}

/* A value and a period: "20/97". */
static snap_status put_pair(const char *key, const char *value, double high, double *out,
                            int64_t *every, snap_err *err) {
    char first[GATE_SIDE_TEXT];
    const char *slash = strchr(value, '/');
    if (!slash || !text_to_int(slash + 1, every) || *every < 1)
        return err_set(err, SNAP_E_USAGE, "an arm's %s is VALUE/N with N of 1 or more, got '%s'",
                       key, value);
    (void)snprintf(first, sizeof first, "%.*s", (int)(slash - value), value);
    return put_number(key, first, high, out, err);
}

double gate_slowing_ns(const gate_slowing *s, double step_ns, int64_t step, int64_t turn) {
    double ns = s->delay_pct / 100 * step_ns;
    if (s->spike_every > 0 && step % s->spike_every == s->spike_every - 1)
        ns += 1e6 * s->spike_ms;
    if (s->slow_every > 0 && turn % s->slow_every == s->slow_every - 1)
        ns += s->slow_pct / 100 * step_ns;
    return ns;
}

bool gate_slowing_any(const gate_slowing *s) {
    return s->delay_pct > 0 || s->spike_ms > 0 || s->slow_pct > 0;
}

static snap_status unknown_key(const char *key, snap_err *err) {
    static const char *const known[] = {"name",  "backend", "isa",  "threads", "precision",
                                        "delay", "spike",   "slow", NULL};
    char hint[NEAREST_HINT];
    return err_set(err, SNAP_E_USAGE,
                   "unknown key '%.40s' of an arm%s: name, backend, isa, threads, precision, "
                   "delay, spike, slow",
                   key, nearest_hint(key, known, "", hint));
}

static snap_status put_key(gate_side *a, const char *key, const char *value, snap_err *err) {
    double number = 0;
    if (strcmp(key, "name") == 0)
        return put(a->name, sizeof a->name, key, value, err);
    if (strcmp(key, "backend") == 0)
        return put(a->backend, sizeof a->backend, key, value, err);
    if (strcmp(key, "isa") == 0)
        return put(a->isa, sizeof a->isa, key, value, err);
    if (strcmp(key, "delay") == 0)
        return put_number(key, value, 1000, &a->slowing.delay_pct, err);
    if (strcmp(key, "spike") == 0)
        return put_pair(key, value, 1e4, &a->slowing.spike_ms, &a->slowing.spike_every, err);
    if (strcmp(key, "slow") == 0)
        return put_pair(key, value, 1000, &a->slowing.slow_pct, &a->slowing.slow_every, err);
    if (strcmp(key, "threads") == 0) {
        snap_status st = put_number(key, value, 1024, &number, err);
        a->threads = (int)number;
        return st;
    }
    if (strcmp(key, "precision") != 0)
        return unknown_key(key, err);
    bench_kind kind;
    if (!bench_kind_parse(value, &kind))
        return err_set(err, SNAP_E_USAGE,
                       "an arm's precision is bf16, fp8 or a name of bench --ablation, got '%s'",
                       value);
    return put(a->precision, sizeof a->precision, key, value, err);
}

static snap_status read_part(void *ctx, const char *part, snap_err *err) {
    reader *r = ctx;
    if (r->first) {
        r->first = false;
        bool self = strcmp(part, "self") == 0;
        return put(r->arm->program, sizeof r->arm->program, "program",
                   self ? "/proc/self/exe" : part, err);
    }
    char key[GATE_SIDE_TEXT];
    (void)snprintf(key, sizeof key, "%s", part);
    char *equal = strchr(key, '=');
    if (!equal)
        return err_set(err, SNAP_E_USAGE, "an arm is PROGRAM[,KEY=VALUE...], got '%s'", part);
    *equal = '\0';
    return put_key(r->arm, key, equal + 1, err);
}

snap_status gate_side_parse(gate_side *out, const char *text, const gate_side *fallback,
                            snap_err *err) {
    *out = *fallback;
    reader r = {out, true};
    return text_split(text, ',', "an arm", read_part, &r, err);
}
