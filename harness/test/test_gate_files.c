#include <CUnit/CUnit.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/rng.h"
#include "harness/gate/files.h"
#include "harness/gate/quality.h"
#include "harness/gate/remote.h"
#include "harness/gate/verdicts.h"

/* The fixture; rows that did not pass are marked as skipped. */
static results *load(void) {
    results *r = NULL;
    CU_ASSERT_FATAL(results_load(&r, "harness/test/fixtures/run.json", NULL) == SNAP_OK);
    js *rows = results_section(r, "bench");
    for (size_t i = 0; i < js_len(rows); i++)
        if (strcmp(js_get_str(js_at(rows, i), "status"), "passed") != 0)
            CU_ASSERT(js_set_str(js_at(rows, i), "status", "skipped"));
    return r;
}

/* Gives every row with a performance 100 samples around its median times @factor, and removes all
 * flags. */
static void resample(results *r, double factor, uint64_t seed) {
    js *rows = results_section(r, "bench");
    for (size_t i = 0; i < js_len(rows); i++) {
        js *perf = js_get_object(js_at(rows, i), "performance"), *samples = js_new_array();
        rng random = rng_make(seed, i);
        double median = js_get_num(perf, "median_ns", 1e5) * factor;
        for (int k = 0; perf && k < 100; k++)
            CU_ASSERT(js_push_new(samples, js_new_num(median * (1 + 0.01 * rng_normal(&random)))));
        if (perf) {
            CU_ASSERT(js_set_new(perf, "samples_ns", samples) &&
                      js_set_num(perf, "median_ns", median));
        } else {
            js_free(samples);
        }
        CU_ASSERT(js_set_new(js_at(rows, i), "flags", js_new_array()));
    }
}

static void set_all(results *r, const char *key, const char *value) {
    js *rows = results_section(r, "bench");
    for (size_t i = 0; i < js_len(rows); i++)
        CU_ASSERT(js_set_str(js_at(rows, i), key, value));
}

static void set_program(results *r, const char *commit) {
    js *p = js_get_object(js_get_object(results_document(r), "provenance"), "program");
    CU_ASSERT(js_set_str(p, "commit", commit) && js_set_bool(p, "dirty", false));
}

#define NEAR(a, b, eps) CU_ASSERT_DOUBLE_EQUAL(a, b, eps)

static const gate_file_options defaults = {.limits = GATE_DEFAULTS, .error_growth = 0.1};

static snap_status check(const results *a, const results *b, const gate_file_options *opt,
                         js **rows) {
    snap_err err = {0};
    *rows = js_new_array();
    CU_ASSERT_FATAL(gate_check_speed(a, b, opt, *rows, &err) == SNAP_OK);
    CU_ASSERT_FATAL(gate_check_fidelity(a, b, opt, *rows, &err) == SNAP_OK);
    return verdict_status(*rows, &err);
}

static const char hash_of_other_code[] =
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";

static void test_speed(void) {
    results *before = load(), *same = load(), *slow = load();
    js *rows;
    resample(before, 1, 1);
    resample(same, 1, 2);
    resample(slow, 1.05, 3);
    CU_ASSERT(check(before, same, &defaults, &rows) == SNAP_OK);
    CU_ASSERT(verdict_count(rows, "speed", "ok") >= 2);
    js_free(rows);
    CU_ASSERT(check(before, slow, &defaults, &rows) == SNAP_OK); /* the machine code is the same */
    CU_ASSERT(verdict_count(rows, "speed", "noise") >= 2);
    js_free(rows);
    /* A GPU's kernels are launched by a program, which must be the same as well. */
    set_all(before, "backend", "cuda");
    set_all(slow, "backend", "cuda");
    set_program(before, "0123456789ab");
    set_program(slow, "0123456789ab");
    CU_ASSERT(check(before, slow, &defaults, &rows) == SNAP_OK);
    CU_ASSERT(verdict_count(rows, "speed", "noise") >= 2);
    js_free(rows);
    set_program(slow, "ba9876543210");
    CU_ASSERT(check(before, slow, &defaults, &rows) == SNAP_E_SLOWER);
    CU_ASSERT(verdict_count(rows, "speed", "regressed") >= 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(js_get_str(js_at(rows, 0), "reason"), "the host's part"));
    js_free(rows);
    set_all(slow, "kernel_hash", hash_of_other_code);
    CU_ASSERT(check(before, slow, &defaults, &rows) == SNAP_E_SLOWER);
    CU_ASSERT(verdict_count(rows, "speed", "regressed") >= 2);
    CU_ASSERT_PTR_NULL(js_get_str(js_at(rows, 0), "reason"));
    for (size_t i = 0; i < js_len(rows); i++)
        if (strcmp(js_get_str(js_at(rows, i), "kind"), "geomean") == 0)
            CU_ASSERT_DOUBLE_EQUAL(js_get_num(js_at(rows, i), "ratio", 0), 1.05, 0.005);
    js_free(rows);
    CU_ASSERT(check(slow, before, &defaults, &rows) == SNAP_OK); /* a faster run passes */
    js_free(rows);
    results_free(before);
    results_free(same);
    results_free(slow);
}

static void add_flag(results *r, const char *flag) {
    js *flags = js_new_array();
    CU_ASSERT(js_push_new(flags, js_new_str(flag)));
    CU_ASSERT(js_set_new(js_at(results_section(r, "bench"), 0), "flags", flags));
}

static void test_conditions(void) {
    gate_file_options lenient = defaults;
    results *before = load(), *now = load();
    js *rows;
    resample(before, 1, 1);
    resample(now, 1, 2);
    lenient.allow_shared = true;
    add_flag(now, "throttled");
    CU_ASSERT(check(before, now, &lenient, &rows) == SNAP_E_ENV);
    js_free(rows);
    resample(now, 1, 2);
    set_all(now, "cold", "none");
    CU_ASSERT(check(before, now, &defaults, &rows) == SNAP_E_ENV);
    js_free(rows);
    results_free(now);
    now = load();
    resample(now, 1, 2);
    js *host = js_get_object(js_get_object(results_document(now), "provenance"), "host");
    CU_ASSERT(js_set_str(host, "name_sha256", hash_of_other_code));
    CU_ASSERT(check(before, now, &defaults, &rows) == SNAP_E_ENV);
    CU_ASSERT_EQUAL(verdict_count(rows, "environment", "invalid"), 1);
    js_free(rows);
    lenient.any_machine = true;
    CU_ASSERT(check(before, now, &lenient, &rows) == SNAP_OK);
    js_free(rows);
    results_free(before);
    results_free(now);
}

/* Multiplies the samples of every row: the first half by @first, the second half by @second, as
 * other work on the machine lengthens them. Flags the rows as shared. */
static void disturb(results *r, double first, double second) {
    js *rows = results_section(r, "bench");
    for (size_t i = 0; i < js_len(rows); i++) {
        js *perf = js_get_object(js_at(rows, i), "performance"), *flags = js_new_array();
        const js *old = js_get_array(perf, "samples_ns");
        js *samples = js_new_array();
        for (size_t k = 0; k < js_len(old); k++)
            CU_ASSERT(js_push_new(samples, js_new_num(js_num(js_at(old, k)) *
                                                      (2 * k < js_len(old) ? first : second))));
        CU_ASSERT(js_push_new(flags, js_new_str("shared")));
        CU_ASSERT(js_set_new(js_at(rows, i), "flags", flags));
        if (perf) {
            CU_ASSERT(js_set_new(perf, "samples_ns", samples));
        } else {
            js_free(samples);
        }
    }
}

/* What can be decided if other programs used the processors: that a cell is slower by more than the
 * disturbance, or that it is not, if the disturbance is small. The rest cannot be judged. */
static void test_disturbed(void) {
    static const struct {
        double factor, first, second; /* slow-down of the current run, and its disturbance */
        snap_status status;
    } cases[] = {
        {1, 1, 1, SNAP_OK},         {1, 1, 1.1, SNAP_OK},   {2, 1, 1.1, SNAP_E_SLOWER},
        {1.05, 1, 1.1, SNAP_E_ENV}, {1, 1, 3, SNAP_E_ENV},  {2, 1, 3, SNAP_E_ENV},
        {20, 1, 3, SNAP_E_SLOWER},  {0.5, 1, 1.1, SNAP_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        results *before = load(), *now = load();
        js *rows;
        resample(before, 1, 1);
        resample(now, cases[i].factor, 2);
        disturb(before, 1, 1);
        disturb(now, cases[i].first, cases[i].second);
        set_all(now, "kernel_hash", hash_of_other_code);
        CU_ASSERT_EQUAL(check(before, now, &defaults, &rows), cases[i].status);
        CU_ASSERT_STRING_EQUAL(js_get_str(js_at(rows, 0), "statistic"), "lower quartile");
        js_free(rows);
        results_free(before);
        results_free(now);
    }
}

/* The load by others can stay the same while a cell is measured: the disturbance of one cell counts
 * for all. */
static void test_disturbance_of_all_cells(void) {
    results *before = load(), *now = load();
    js *rows, *cell, *samples = js_new_array();
    resample(before, 1, 1);
    resample(now, 2, 2);
    disturb(before, 1, 1);
    disturb(now, 1, 1);
    set_all(now, "kernel_hash", hash_of_other_code);
    CU_ASSERT(check(before, now, &defaults, &rows) == SNAP_E_SLOWER);
    js_free(rows);
    cell = js_get_object(js_at(results_section(now, "bench"), 0), "performance");
    for (int i = 0; i < 100; i++)
        CU_ASSERT(js_push_new(samples, js_new_num(i % 50 < 25 ? 1e4 : 1e6)));
    CU_ASSERT(js_set_new(cell, "samples_ns", samples));
    CU_ASSERT(check(before, now, &defaults, &rows) == SNAP_E_ENV);
    CU_ASSERT_EQUAL(verdict_count(rows, "speed", "regressed"), 0);
    js_free(rows);
    results_free(before);
    results_free(now);
}

static void test_missing_and_wrong(void) {
    results *before = load(), *now = load();
    js *rows, *cell;
    resample(before, 1, 1);
    resample(now, 1, 2);
    cell = js_at(results_section(now, "bench"), 0);
    CU_ASSERT(js_set_str(cell, "status", "failed") && js_set_str(cell, "reason", "off by one") &&
              js_set_new(cell, "performance", js_new_null()));
    CU_ASSERT(check(before, now, &defaults, &rows) == SNAP_E_WRONG);
    js_free(rows);
    CU_ASSERT(check(now, now, &defaults, &rows) == SNAP_E_WRONG); /* even if it was wrong before */
    js_free(rows);
    CU_ASSERT(js_set_str(cell, "status", "skipped"));
    CU_ASSERT(check(before, now, &defaults, &rows) == SNAP_E_OPEN);
    CU_ASSERT_EQUAL(verdict_count(rows, "speed", "missing"), 1);
    js_free(rows);
    results_free(before);
    results_free(now);
}

static void test_few_samples(void) {
    results *before = load(), *now = load();
    js *rows;
    CU_ASSERT(check(before, now, &defaults, &rows) != SNAP_OK); /* five samples cannot decide */
    CU_ASSERT_EQUAL(verdict_count(rows, "speed", "ok"), 0);
    js_free(rows);
    results_free(before);
    results_free(now);
}

static void test_fidelity(void) {
    results *before = load(), *now = load();
    js *rows = js_new_array(), *cells = results_section(now, "fidelity");
    CU_ASSERT_FATAL(js_len(cells) > 0);
    double was = js_get_num(js_at(cells, 0), "rel_l2", 0);
    CU_ASSERT(gate_check_fidelity(before, now, &defaults, rows, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL(verdict_count(rows, "fidelity", "ok"), js_len(cells));
    CU_ASSERT(js_set_num(js_at(cells, 0), "rel_l2", was * 1.2));
    CU_ASSERT(gate_check_fidelity(before, now, &defaults, rows, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL(verdict_count(rows, "fidelity", "regressed"), 1);
    CU_ASSERT(verdict_status(rows, NULL) == SNAP_E_WORSE);
    js_free(rows);
    results_free(before);
    results_free(now);
}

/* An error of exactly 0 is possible, and a ratio to it is not: the row has none, and a result file
 * accepts it. */
static void test_fidelity_without_error(void) {
    results *before = load(), *now = load(), *out = NULL;
    js *rows = js_new_array();
    CU_ASSERT(js_set_num(js_at(results_section(now, "fidelity"), 0), "rel_l2", 0));
    CU_ASSERT(gate_check_fidelity(before, now, &defaults, rows, NULL) == SNAP_OK);
    CU_ASSERT(verdict_count(rows, "fidelity", "regressed") == 0);
    CU_ASSERT(gate_check_fidelity(now, before, &defaults, rows, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL(verdict_count(rows, "fidelity", "regressed"), 1);
    CU_ASSERT_FATAL(results_new(&out, "gate", NULL, 0, NULL) == SNAP_OK);
    CU_ASSERT(results_add_all(out, "verdicts", rows, NULL) == SNAP_OK);
    results_free(out);
    results_free(before);
    results_free(now);
}

/* ---- quality ---- */

static void put_pair(results *r, const char *verdict, double delta, double lo, double hi,
                     double p) {
    js *pair = js_at(js_get_array(js_at(results_section(r, "evals"), 0), "pairs"), 0);
    js *ci = js_new_array();
    CU_ASSERT_FATAL(pair != NULL);
    CU_ASSERT(js_push_new(ci, js_new_num(lo)) && js_push_new(ci, js_new_num(hi)));
    CU_ASSERT(js_set_str(pair, "verdict", verdict) && js_set_num(pair, "delta_pp", delta) &&
              js_set_new(pair, "ci90_pp", ci) && js_set_num(pair, "p_sign_flip", p) &&
              js_set_num(pair, "margin_pp", 2) && js_set_new(pair, "refused", js_new_null()) &&
              js_set_new(pair, "control", js_new_null()));
}

static const char *quality_of(const results *r) {
    static const gate_quality_options opt = {.alpha = 0.05};
    static char verdict[32];
    js *rows = js_new_array();
    CU_ASSERT(gate_check_quality(r, r, &opt, rows, NULL) == SNAP_OK);
    (void)snprintf(verdict, sizeof verdict, "%s", js_get_str(js_at(rows, 0), "verdict"));
    js_free(rows);
    return verdict;
}

static void test_quality(void) {
    results *r = load();
    put_pair(r, "equivalent", 0.1, -1, 1.2, 0.9);
    CU_ASSERT_STRING_EQUAL(quality_of(r), "ok");
    put_pair(r, "not shown", 0.5, -1.5, 2.5, 0.6); /* shown not to be worse by the margin */
    CU_ASSERT_STRING_EQUAL(quality_of(r), "ok");
    put_pair(r, "not shown", -1, -2.5, 0.5, 0.2);
    CU_ASSERT_STRING_EQUAL(quality_of(r), "inconclusive");
    put_pair(r, "different", -4, -6, -2.5, 0.0001);
    CU_ASSERT_STRING_EQUAL(quality_of(r), "regressed");
    put_pair(r, "different", -4, -6, -2.5, 0.06); /* p is not significant */
    CU_ASSERT_STRING_EQUAL(quality_of(r), "inconclusive");
    put_pair(r, "different", 4, 2.5, 6, 0.001);
    CU_ASSERT_STRING_EQUAL(quality_of(r), "ok");
    results_free(r);
}

/* 200 problems; the answer to every @period-th is wrong. 0: none is wrong. */
static void write_samples(const char *path, const char *task, int period) {
    buf text = {0};
    for (int i = 0; i < 200; i++)
        (void)buf_printf(
            &text, "{\"task\":\"%s\",\"arm\":\"fp8\",\"problem\":\"p%d\",\"verdict\":\"%s\"}\n",
            task, i, period && i % period == 0 ? "wrong" : "correct");
    CU_ASSERT(fs_write_atomic(path, buf_str(&text), text.len, NULL) == SNAP_OK);
    buf_release(&text);
}

/* 200 problems, all answers right, but every @period-th sample was lost. */
static void write_lost(const char *path, const char *task, int period) {
    buf text = {0};
    for (int i = 0; i < 200; i++)
        (void)buf_printf(
            &text, "{\"task\":\"%s\",\"arm\":\"fp8\",\"problem\":\"p%d\",%s}\n", task, i,
            i % period == 0 ? "\"failed\":true,\"verdict\":null" : "\"verdict\":\"correct\"");
    CU_ASSERT(fs_write_atomic(path, buf_str(&text), text.len, NULL) == SNAP_OK);
    buf_release(&text);
}

static void test_quality_between_runs(void) {
    char dir[] = "/tmp/snapmla-gate-XXXXXX", before[64], now[64];
    CU_ASSERT_FATAL(mkdtemp(dir) != NULL);
    (void)snprintf(before, sizeof before, "%s/a.jsonl", dir);
    (void)snprintf(now, sizeof now, "%s/b.jsonl", dir);
    results *r = load();
    js *evals = results_section(r, "evals"), *eval = js_at(evals, 0), *rows = js_new_array();
    const gate_quality_options opt = {
        .alpha = 0.05, .baseline_samples = before, .current_samples = now, .seed = 1};
    for (size_t i = 0; i < js_len(evals); i++)
        CU_ASSERT(js_set_new(js_at(evals, i), "pairs", js_new_array()));
    write_samples(before, js_get_str(eval, "task"), 0);
    write_samples(now, js_get_str(eval, "task"), 10);
    CU_ASSERT(gate_check_quality(r, r, &opt, rows, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL(verdict_count(rows, "quality", "regressed"), 1);
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(js_at(rows, 0), "delta_pp", 0), -10, 1e-9);
    js_free(rows);
    rows = js_new_array();
    write_samples(now, js_get_str(eval, "task"), 0);
    CU_ASSERT(gate_check_quality(r, r, &opt, rows, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL(verdict_count(rows, "quality", "ok"), 1);
    js_free(rows);
    for (int lost = 1; lost <= 3; lost += 2) { /* 1 and 3 of 200; the limit is 1 % */
        rows = js_new_array();
        write_lost(now, js_get_str(eval, "task"), lost == 1 ? 200 : 70);
        CU_ASSERT(gate_check_quality(r, r, &opt, rows, NULL) == SNAP_OK);
        CU_ASSERT_EQUAL(verdict_count(rows, "quality", lost == 1 ? "ok" : "inconclusive"), 1);
        js_free(rows);
    }
    rows = js_new_array();
    results *other = load();
    CU_ASSERT(
        js_set_str(js_at(results_section(other, "evals"), 0), "prompt_sha256", hash_of_other_code));
    CU_ASSERT(gate_check_quality(r, other, &opt, rows, NULL) == SNAP_OK);
    CU_ASSERT(verdict_count(rows, "quality", "invalid") >= 1);
    snap_err err = {0};
    CU_ASSERT(fs_write_atomic(now, "{\"task\":1}\n", 11, NULL) == SNAP_OK);
    CU_ASSERT(gate_check_quality(r, r, &opt, rows, &err) == SNAP_E_INPUT);
    CU_ASSERT(strstr(err.text, "b.jsonl:1") != NULL);
    js_free(rows);
    results_free(r);
    results_free(other);
    (void)unlink(before);
    (void)unlink(now);
    (void)rmdir(dir);
}

/* ---- history ---- */

static void test_history(void) {
    char dir[] = "/tmp/snapmla-gate-XXXXXX", path[64], machine[200];
    CU_ASSERT_FATAL(mkdtemp(dir) != NULL);
    (void)snprintf(path, sizeof path, "%s/times.jsonl", dir);
    results *first = load();
    gate_history *h = NULL;
    history_machine(first, machine);
    for (int i = 0; i < 24; i++) {
        results *r = load();
        resample(r, (i < 12 ? 1 : 1.1) * (1 + 0.002 * (i % 3)), 1);
        CU_ASSERT(history_append(path, r, NULL) == SNAP_OK);
        results_free(r);
    }
    CU_ASSERT_FATAL(history_load(&h, path, machine, false, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL(history_runs(h), 24);
    js *rows = NULL;
    CU_ASSERT_FATAL(history_changes(h, &rows, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(js_len(rows) >= 2);
    CU_ASSERT_EQUAL(js_get_int(js_at(rows, 0), "at", 0), 13);
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(js_at(rows, 0), "ratio", 0), 1.1, 0.001);
    char name[160];
    arena mem = {0};
    cell_record cell;
    CU_ASSERT(record_read(&cell_type, js_at(results_section(first, "bench"), 0), &mem, &cell));
    history_cell_name(&cell, name);
    arena_release(&mem);
    double spread = history_spread(h, name); /* times: 0, 0.2 and 0.4 % above */
    CU_ASSERT_DOUBLE_EQUAL(spread, 0.00170, 0.0001);
    /* A machine with more noise has a higher threshold. */
    gate_file_options opt = defaults;
    results *slow = load();
    resample(first, 1, 1);
    resample(slow, 1.05, 2);
    set_all(slow, "kernel_hash", hash_of_other_code);
    opt.history = h;
    js *verdicts;
    CU_ASSERT(check(first, slow, &opt, &verdicts) == SNAP_E_SLOWER);
    js_free(verdicts);
    history_free(h);
    for (int i = 0; i < 24; i++) {
        results *r = load();
        resample(r, 1.1 * (1 + 0.05 * (i % 2)), 1);
        CU_ASSERT(history_append(path, r, NULL) == SNAP_OK);
        results_free(r);
    }
    CU_ASSERT_FATAL(history_load(&h, path, machine, false, NULL) == SNAP_OK);
    opt.history = h;
    CU_ASSERT(check(first, slow, &opt, &verdicts) == SNAP_OK);
    js_free(verdicts);
    history_free(h);
    snap_err err = {0};
    CU_ASSERT(fs_write_atomic(path, "{\"started\":1}\n", 14, NULL) == SNAP_OK);
    CU_ASSERT(history_load(&h, path, NULL, false, &err) == SNAP_E_INPUT && h == NULL);
    (void)unlink(path);
    CU_ASSERT(history_load(&h, path, NULL, true, NULL) == SNAP_OK && history_runs(h) == 0);
    history_free(h);
    CU_ASSERT(history_load(&h, path, NULL, false, NULL) == SNAP_E_IO);
    js_free(rows);
    results_free(first);
    results_free(slow);
    (void)rmdir(dir);
}

/* ---- arms ---- */

static void test_arm_text(void) {
    static const gate_side fallback = {.name = "A", .backend = "auto", .isa = "auto"};
    gate_side a;
    snap_err err = {0};
    CU_ASSERT(gate_side_parse(&a,
                              "old/snapmla,name=old,precision=fp8,threads=2,delay=1.5,"
                              "spike=20/97,slow=8/10",
                              &fallback, NULL) == SNAP_OK);
    CU_ASSERT_STRING_EQUAL(a.program, "old/snapmla");
    CU_ASSERT_STRING_EQUAL(a.name, "old");
    CU_ASSERT_STRING_EQUAL(a.precision, "fp8");
    CU_ASSERT(a.threads == 2 && a.slowing.delay_pct == 1.5 && strcmp(a.isa, "auto") == 0);
    /* Step 96 of turn 19 is slowed in all three ways. */
    NEAR(gate_slowing_ns(&a.slowing, 1e4, 96, 19), 150 + 2e7 + 800, 1e-6);
    NEAR(gate_slowing_ns(&a.slowing, 1e4, 97, 18), 150, 1e-6);
    static const char *const bad[] = {"",
                                      "self,precision=fp4",
                                      "self,threads=-1",
                                      "self,x=1",
                                      "self,isa",
                                      "self,delay=nan",
                                      "self,name=",
                                      "self,,",
                                      "self,spike=20",
                                      "self,spike=/9",
                                      "self,slow=8/0",
                                      "self,slow=8/1x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT(gate_side_parse(&a, bad[i], &fallback, &err) == SNAP_E_USAGE);
}

static snap_status open_program(const char *program, double timeout_s, snap_err *err) {
    gate_side arm = {.name = "new", .backend = "cpu", .isa = "auto"};
    const remote_options opt = {.distribution = "normal", .seed = 1, .timeout_s = timeout_s};
    gate_remote *r = NULL;
    (void)snprintf(arm.program, sizeof arm.program, "%s", program);
    snap_status st = remote_open(&r, &arm, &opt, err);
    CU_ASSERT((st == SNAP_OK) == (r != NULL));
    remote_close(r);
    return st;
}

static snap_status open_script(const char *body, double timeout_s, snap_err *err) {
    char path[] = "/tmp/snapmla-arm-XXXXXX", text[512];
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    int n = snprintf(text, sizeof text, "#!/bin/sh\n%s\n", body);
    CU_ASSERT(write(fd, text, (size_t)n) == n);
    (void)close(fd);
    CU_ASSERT(chmod(path, 0700) == 0);
    snap_status st = open_program(path, timeout_s, err);
    (void)unlink(path);
    return st;
}

/* Some of these programs end before the request is written. The program ignores SIGPIPE, so the
 * test must. */
static void test_hostile_programs(void) {
    snap_err err = {0};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    CU_ASSERT_FATAL(sigaction(SIGPIPE, &ignore, &before) == 0);
    CU_ASSERT(open_program("/nonexistent/snapmla", 60, &err) == SNAP_E_IO);
    CU_ASSERT(strstr(err.text, "/nonexistent/snapmla") != NULL);
    err = (snap_err){0};
    CU_ASSERT(open_program("/bin/true", 60, &err) == SNAP_E_UNSUPPORTED);
    CU_ASSERT(strstr(err.text, "'new'") != NULL);
    CU_ASSERT(open_script("echo hello", 60, NULL) == SNAP_E_UNSUPPORTED);
    CU_ASSERT(open_script("read x; echo '[]'", 60, NULL) == SNAP_E_UNSUPPORTED);
    CU_ASSERT(open_script("read x; echo '{\"protocol\":99}'", 60, NULL) == SNAP_E_UNSUPPORTED);
    CU_ASSERT(open_script("read x; echo '{\"fatal\":\"no such card\"}'", 60, NULL) ==
              SNAP_E_DEVICE);
    CU_ASSERT(open_script("read x; head -c 100000 /dev/zero", 60, NULL) == SNAP_E_INPUT);
    CU_ASSERT(open_script("read x; exec sleep 100", 0.3, NULL) == SNAP_E_DEVICE);
    CU_ASSERT(open_script("read x; echo '{\"protocol\":1}'", 60, NULL) == SNAP_OK);
    CU_ASSERT(sigaction(SIGPIPE, &before, NULL) == 0);
}

CU_TestInfo tests_gate_files[] = {
    {"speed from files", test_speed},
    {"rows of other conditions are not compared", test_conditions},
    {"cells that other programs disturbed", test_disturbed},
    {"the disturbance of one cell counts for all", test_disturbance_of_all_cells},
    {"missing and wrong cells", test_missing_and_wrong},
    {"few samples decide nothing", test_few_samples},
    {"numerical error", test_fidelity},
    {"a numerical error of 0", test_fidelity_without_error},
    {"quality within a run", test_quality},
    {"quality between runs", test_quality_between_runs},
    {"a history of runs finds changes and measures noise", test_history},
    {"arms are read from text", test_arm_text},
    {"programs that are not arms", test_hostile_programs},
    CU_TEST_INFO_NULL};
