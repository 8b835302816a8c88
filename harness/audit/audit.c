#include "harness/audit/audit.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

const double verify_rounding = 1e-6;

bool verify_is_near(double a, double b) {
    return fabs(a - b) <= verify_rounding * fmax(fabs(a), fabs(b));
}

static const char *kind_name(verify_kind k) {
    static const char *const names[] = {"form", "correctness", "physics", "mixed", "note"};
    return names[k];
}

void verify_release(verify_findings *f) {
    js_free(f->rows);
    *f = (verify_findings){0};
}

void verify_add(verify_findings *f, verify_kind kind, const char *where, const char *fmt, ...) {
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (f->n[kind]++ >= VERIFY_MAX)
        return;
    if (!f->rows)
        f->rows = js_new_array();
    js *row = js_new_object();
    bool ok = row && js_set_str(row, "kind", kind_name(kind)) && js_set_str(row, "where", where) &&
              js_set_str(row, "what", text);
    if (f->rows)
        ok = js_push_new(f->rows, row) && ok;
    else
        js_free(row);
    f->failed |= !ok || !f->rows;
}

/* ---- provenance ---- */

static bool is_hex(const char *s) {
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)s[i]) && !(s[i] >= 'a' && s[i] <= 'f'))
            return false;
    return n == HASH_HEX - 1;
}

static void check_config(const origin_record *o, const char *where, verify_findings *f) {
    buf text = {0};
    char hex[HASH_HEX] = "";
    f->checks++;
    if (js_write(o->config, JS_COMPACT, &text, NULL) != SNAP_OK ||
        hash_bytes(buf_str(&text), text.len, hex, NULL) != SNAP_OK)
        f->failed = true;
    else if (strcmp(o->config_sha256, hex) != 0)
        verify_add(f, VERIFY_FORM, where, "the configuration has the hash %.12s, not %.12s", hex,
                   o->config_sha256);
    buf_release(&text);
}

/* Times in UTC text have the order of their strings, so strcmp() compares them. */
static void check_times(const origin_record *o, const char *where, verify_findings *f) {
    f->checks++;
    if (o->interrupted[0] && !o->ended[0])
        verify_add(f, VERIFY_NOTE, where, "interrupted: %s", o->interrupted);
    else if (!o->ended[0])
        verify_add(f, VERIFY_FORM, where, "the run has no end");
    else if (strcmp(o->started, o->ended) > 0)
        verify_add(f, VERIFY_FORM, where, "the run ended at %s, before it began at %s", o->ended,
                   o->started);
}

static void check_program(const origin_program *o, const char *where, verify_findings *f) {
    f->checks++;
    if (o->dirty)
        verify_add(f, VERIFY_NOTE, where, "a build with uncommitted changes");
    if (strcmp(o->commit, "unknown") == 0)
        verify_add(f, VERIFY_NOTE, where, "a build of an unknown commit");
}

static void check_provenance(const origin_record *o, const char *where, verify_findings *f) {
    check_config(o, where, f);
    check_times(o, where, f);
    check_program(&o->program, where, f);
}

/* ---- hashes in rows ---- */

static void check_hash(const char *hex, const char *key, const char *where, verify_findings *f) {
    f->checks += hex[0] != '\0';
    if (hex[0] && !is_hex(hex))
        verify_add(f, VERIFY_FORM, where, "%s is not a SHA-256 in lower-case hexadecimal", key);
}

static void check_hashes(const run_record *r, verify_findings *f) {
    char where[64];
    for (size_t i = 0; i < r->bench.n; i++) {
        (void)snprintf(where, sizeof where, "bench[%zu]", i);
        check_hash(r->bench.at[i].kernel_hash, "kernel_hash", where, f);
    }
    for (size_t i = 0; i < r->evals.n; i++) {
        (void)snprintf(where, sizeof where, "evals[%zu]", i);
        check_hash(r->evals.at[i].prompt_sha256, "prompt_sha256", where, f);
        check_hash(r->evals.at[i].dataset.sha256, "sha256", where, f);
        check_hash(r->evals.at[i].task_sha256, "task_sha256", where, f);
    }
}

static void check_run(const run_record *r, verify_findings *f) {
    char where[64];
    check_provenance(&r->provenance, "provenance", f);
    for (size_t i = 0; i < r->sources.n; i++) {
        (void)snprintf(where, sizeof where, "sources[%zu]", i);
        check_provenance(&r->sources.at[i], where, f);
    }
    check_hashes(r, f);
    verify_bench(r, f);
    verify_steps(r, f);
    verify_exchange(r, f);
    verify_predicted(r, f);
    verify_challenge(r, f);
    verify_quality(r, f);
    verify_origin(r, f);
}

void verify_document(const results *r, verify_findings *f) {
    arena mem = {0};
    run_record run;
    if (run_read(&run, r, &mem, NULL) == SNAP_OK)
        check_run(&run, f);
    else
        f->failed = true;
    arena_release(&mem);
}

/* ---- the status of all findings ---- */

snap_status verify_status(const verify_findings *f, snap_err *err) {
    static const struct {
        verify_kind kind;
        snap_status status;
    } order[] = {{VERIFY_FORM, SNAP_E_INPUT},
                 {VERIFY_CORRECTNESS, SNAP_E_WRONG},
                 {VERIFY_PHYSICS, SNAP_E_WRONG},
                 {VERIFY_MIXED, SNAP_E_ENV}};
    if (f->failed)
        return err_set(err, SNAP_E_NOMEM, "out of memory for findings");
    for (size_t o = 0; o < sizeof order / sizeof *order; o++)
        for (size_t i = 0; i < js_len(f->rows); i++) {
            const js *row = js_at(f->rows, i);
            if (strcmp(js_get_str(row, "kind"), kind_name(order[o].kind)) == 0)
                return err_set(err, order[o].status, "%zu finding%s of %s, first: %s: %s",
                               f->n[order[o].kind], f->n[order[o].kind] == 1 ? "" : "s",
                               kind_name(order[o].kind), js_get_str(row, "where"),
                               js_get_str(row, "what"));
        }
    return SNAP_OK;
}
