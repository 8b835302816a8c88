#include "harness/audit/audit.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

const char *verify_kind_name(verify_kind k) {
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
    bool ok = row && js_set_str(row, "kind", verify_kind_name(kind)) &&
              js_set_str(row, "where", where) && js_set_str(row, "what", text);
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

static void check_config(const js *p, const char *where, verify_findings *f) {
    const char *said = js_get_str(p, "config_sha256");
    buf text = {0};
    char hex[HASH_HEX] = "";
    f->checks++;
    if (js_write(js_get_object(p, "config"), JS_COMPACT, &text, NULL) != SNAP_OK ||
        hash_bytes(buf_str(&text), text.len, hex, NULL) != SNAP_OK)
        f->failed = true;
    else if (!text_equal(said, hex))
        verify_add(f, VERIFY_FORM, where, "the configuration has the hash %.12s, not %.12s", hex,
                   said ? said : "");
    buf_release(&text);
}

/* Times are written as text that sorts. */
static void check_times(const js *p, const char *where, verify_findings *f) {
    const char *started = js_get_str(p, "started"), *ended = js_get_str(p, "ended");
    f->checks++;
    if (!ended)
        verify_add(f, VERIFY_FORM, where, "the run has no end");
    else if (started && strcmp(started, ended) > 0)
        verify_add(f, VERIFY_FORM, where, "the run ended at %s, before it began at %s", ended,
                   started);
}

static void check_program(const js *p, const char *where, verify_findings *f) {
    const js *program = js_get_object(p, "program");
    const char *commit = js_get_str(program, "commit");
    f->checks++;
    if (js_get_bool(program, "dirty", false))
        verify_add(f, VERIFY_NOTE, where, "a build with uncommitted changes");
    if (text_equal(commit, "unknown"))
        verify_add(f, VERIFY_NOTE, where, "a build of an unknown commit");
}

static void check_provenance(const js *p, const char *where, verify_findings *f) {
    check_config(p, where, f);
    check_times(p, where, f);
    check_program(p, where, f);
}

/* ---- hashes in rows ---- */

static void check_hash(const js *o, const char *key, const char *where, verify_findings *f) {
    const char *hex = js_get_str(o, key);
    f->checks += hex != NULL;
    if (hex && !is_hex(hex))
        verify_add(f, VERIFY_FORM, where, "%s is no SHA-256 in lower-case hexadecimal", key);
}

static void check_hashes(const results *r, verify_findings *f) {
    static const char *const sections[][2] = {{"bench", "kernel_hash"}, {"evals", "prompt_sha256"}};
    char where[64];
    for (size_t s = 0; s < 2; s++) {
        const js *rows = results_section(r, sections[s][0]);
        for (size_t i = 0; i < js_len(rows); i++) {
            (void)snprintf(where, sizeof where, "%s[%zu]", sections[s][0], i);
            check_hash(js_at(rows, i), sections[s][1], where, f);
            const js *data = js_get_object(js_at(rows, i), "dataset");
            if (data)
                check_hash(data, "sha256", where, f);
        }
    }
}

void verify_document(const results *r, verify_findings *f) {
    const js *document = results_document(r), *sources = js_get_array(document, "sources");
    char where[64];
    check_provenance(js_get_object(document, "provenance"), "provenance", f);
    for (size_t i = 0; i < js_len(sources); i++) {
        (void)snprintf(where, sizeof where, "sources[%zu]", i);
        check_provenance(js_at(sources, i), where, f);
    }
    check_hashes(r, f);
    verify_bench(r, f);
    verify_quality(r, f);
    verify_origin(r, f);
}

/* ---- what they come to ---- */

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
            if (strcmp(js_get_str(row, "kind"), verify_kind_name(order[o].kind)) == 0)
                return err_set(err, order[o].status, "%zu finding%s of %s, first: %s: %s",
                               f->n[order[o].kind], f->n[order[o].kind] == 1 ? "" : "s",
                               verify_kind_name(order[o].kind), js_get_str(row, "where"),
                               js_get_str(row, "what"));
        }
    return SNAP_OK;
}
