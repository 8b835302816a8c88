#include "harness/measure/ceilings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The three probes in the order of `samples`. */
static const struct {
    const char *name, *unit;
    size_t at; /* offset in mla_ceilings */
} kinds[CEILINGS_KINDS] = {
    {"read_bandwidth", "B/s", offsetof(mla_ceilings, read)},
    {"bf16_mma", "FLOP/s", offsetof(mla_ceilings, bf16)},
    {"fp8_mma", "FLOP/s", offsetof(mla_ceilings, fp8)},
};

static mla_ceiling *ceiling_at(mla_ceilings *c, int kind) {
    return (mla_ceiling *)(void *)((char *)c + kinds[kind].at);
}

static const mla_ceiling *ceiling_of(const mla_ceilings *c, int kind) {
    return (const mla_ceiling *)(const void *)((const char *)c + kinds[kind].at);
}

/* Adds one repetition. When all places are taken, a new best rate takes the last one, so that the
 * ceiling is always among the samples. */
static void add_round(ceilings *c, const mla_ceilings *round) {
    bool full = c->rounds == CEILINGS_MAX_ROUNDS;
    for (int k = 0; k < CEILINGS_KINDS; k++) {
        const mla_ceiling *now = ceiling_of(round, k);
        mla_ceiling *best = ceiling_at(&c->best, k);
        if (!full || now->rate > best->rate)
            c->samples[k][full ? CEILINGS_MAX_ROUNDS - 1 : c->rounds] = now->rate;
        if (now->rate > best->rate)
            *best = *now;
    }
    c->rounds += !full;
}

void ceilings_add(ceilings *c, mla_probe_rates probed) {
    mla_ceilings round = {.read = {.rate = probed.read, .windows = 1},
                          .bf16 = {.rate = probed.bf16, .windows = 1},
                          .fp8 = {.rate = probed.fp8, .windows = 1}};
    if (!(probed.read > 0 && probed.bf16 > 0 && probed.fp8 > 0))
        return;
    for (int k = 0; k < CEILINGS_KINDS; k++)
        (void)snprintf(ceiling_at(&round, k)->how, MLA_CEILING_HOW,
                       "a short window between samples");
    add_round(c, &round);
}

snap_status ceilings_measure(ceilings *c, mla_backend *be, int rounds, double seconds,
                             snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < rounds; i++) {
        mla_ceilings round;
        TRY(mla_ceilings_measure(&round, be, seconds, err));
        add_round(c, &round);
        c->best.fp8_native = round.fp8_native;
        c->best.read_bytes = round.read_bytes;
    }
cleanup:
    return st;
}

static js *row_json(const ceilings *c, int kind) {
    js *row = js_new_object(), *samples = js_new_array();
    const mla_ceiling *best = ceiling_of(&c->best, kind);
    bool ok = row && samples;
    for (int i = 0; i < c->rounds && ok; i++)
        ok = js_push_new(samples, js_new_num(c->samples[kind][i]));
    ok = ok && js_set_str(row, "name", kinds[kind].name) && js_set_num(row, "value", best->rate) &&
         js_set_str(row, "unit", kinds[kind].unit) && js_set_str(row, "method", best->how) &&
         js_set_str(row, "origin", "measured");
    ok = js_set_new(row, "samples", samples) && ok;
    if (ok)
        return row;
    js_free(row);
    return NULL;
}

js *ceilings_json(const ceilings *c) {
    js *rows = js_new_array();
    for (int k = 0; k < CEILINGS_KINDS; k++)
        if (!js_push_new(rows, row_json(c, k))) {
            js_free(rows);
            return NULL;
        }
    return rows;
}

static js *limit_json(const char *name, double value, const char *unit, const char *method) {
    js *row = js_new_object(), *samples = js_new_array();
    bool ok = row && samples && js_push_new(samples, js_new_num(value)) &&
              js_set_str(row, "name", name) && js_set_num(row, "value", value) &&
              js_set_str(row, "unit", unit) && js_set_str(row, "method", method) &&
              js_set_str(row, "origin", "measured");
    ok = js_set_new(row, "samples", samples) && ok;
    if (ok)
        return row;
    js_free(row);
    return NULL;
}

js *ceilings_limits_json(const mla_limits *l) {
    const struct {
        const char *name;
        double value;
        const char *unit, *method;
    } all[] = {
        {"bf16_mma_sustained", l->bf16, "FLOP/s", "second half of a loop of some seconds"},
        {"fp8_mma_sustained", l->fp8, "FLOP/s", "second half of a loop of some seconds"},
        {"timer", l->timer_ns, "ns", "two clock readings with nothing between, after a long read"},
        {"launch", l->launch_ns, "ns",
         "two clock readings around an empty kernel, after a long read"},
        {"cold_read", l->cold_read_ns, "ns", "reads that depend on each other, in 2 GB"},
    };
    js *rows = js_new_array();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!js_push_new(rows, limit_json(all[i].name, all[i].value, all[i].unit, all[i].method))) {
            js_free(rows);
            return NULL;
        }
    return rows;
}

static const js *find_row(const js *rows, const char *name) {
    for (size_t i = 0; i < js_len(rows); i++) {
        const char *found = js_get_str(js_at(rows, i), "name");
        if (found && strcmp(found, name) == 0)
            return js_at(rows, i);
    }
    return NULL;
}

/* Reads the samples of a row. A row without samples has one: its value. */
static int parse_samples(double *samples, const js *row, double value) {
    const js *kept = js_get_array(row, "samples");
    int n = 0;
    for (size_t i = 0; i < js_len(kept) && n < CEILINGS_MAX_ROUNDS; i++)
        samples[n++] = js_num(js_at(kept, i));
    if (!n)
        samples[n++] = value;
    return n;
}

snap_status ceilings_parse(ceilings *c, const js *rows, const char *where, snap_err *err) {
    *c = (ceilings){.rounds = CEILINGS_MAX_ROUNDS};
    for (int k = 0; k < CEILINGS_KINDS; k++) {
        const js *row = find_row(rows, kinds[k].name);
        double value = row ? js_get_num(row, "value", 0) : 0;
        if (!(value > 0) || !isfinite(value))
            return err_set(err, SNAP_E_INPUT, "%s: no ceiling '%s' with a positive value", where,
                           kinds[k].name);
        mla_ceiling *best = ceiling_at(&c->best, k);
        const char *how = js_get_str(row, "method");
        int kept = parse_samples(c->samples[k], row, value);
        c->rounds = kept < c->rounds ? kept : c->rounds;
        best->rate = value;
        (void)snprintf(best->how, sizeof best->how, "%s", how ? how : "");
    }
    return SNAP_OK;
}
