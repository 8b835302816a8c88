#include "harness/record/results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/text.h"
#include "harness/record/origin.h"
#include "harness/record/provenance.h"
#include "harness/record/schema.h"

static const char kName[] = "snapmla.run";
static const size_t kFileLimit = (size_t)256 << 20; /* bytes of a result file at most */
static const char *const kSections[] = {"ceilings", "bench",    "fidelity",  "model_fidelity",
                                        "e2e",      "exchange", "predicted", "evals",
                                        "pooled",   "serving",  "verdicts"};
enum { SECTIONS = sizeof kSections / sizeof *kSections };

struct results {
    js *document;
    js *schema;
};

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for a result file");
}

/* ---- a new document ---- */

static js *version_json(void) {
    js *o = js_new_object();
    if (o && js_set_str(o, "name", kName) && js_set_int(o, "major", RESULTS_MAJOR) &&
        js_set_int(o, "minor", RESULTS_MINOR))
        return o;
    js_free(o);
    return NULL;
}

static snap_status add_sections(js *document, snap_err *err) {
    bool ok = document && js_set_new(document, "schema", version_json());
    for (size_t i = 0; i < SECTIONS && ok; i++)
        ok = js_set_new(document, kSections[i], js_new_array());
    return ok ? SNAP_OK : no_memory(err);
}

static snap_status set_provenance(js *document, const char *command, const js *config, int64_t seed,
                                  snap_err *err) {
    js *p;
    snap_status st = provenance_collect(&p, command, config, seed, err);
    if (st == SNAP_OK && !js_set_new(document, "provenance", p))
        st = no_memory(err);
    return st;
}

snap_status results_new(results **out, const char *command, const js *config, int64_t seed,
                        snap_err *err) {
    results *r = calloc(1, sizeof *r);
    snap_status st = SNAP_OK;
    *out = NULL;
    if (!r)
        return no_memory(err);
    r->document = js_new_object();
    r->schema = schema_of_results(err);
    TRY(r->schema ? SNAP_OK : no_memory(err));
    TRY(add_sections(r->document, err));
    TRY(set_provenance(r->document, command, config, seed, err));
    *out = r;
    r = NULL;
cleanup:
    results_free(r);
    return st;
}

void results_free(results *r) {
    if (!r)
        return;
    js_free(r->document);
    js_free(r->schema);
    free(r);
}

static js *provenance_of(const results *r) {
    return js_get_object(r->document, "provenance");
}

snap_status results_set_backend(results *r, const char *name, const char *device,
                                const char *kernel, int threads, snap_err *err) {
    const origin_backend backend = {.exists = true,
                                    .name = name,
                                    .device = device,
                                    .kernel = kernel,
                                    .threads = threads > 0 ? threads : RECORD_NO_COUNT};
    js *o = record_write(&origin_backend_type, &backend);
    return js_set_new(provenance_of(r), "backend", o) ? SNAP_OK : no_memory(err);
}

snap_status results_set_plugin(results *r, const char *backend, snap_err *err) {
    plugin_record plugin;
    arena mem = {0};
    snap_status st = provenance_plugin(backend, &mem, &plugin, err);
    js *to = js_get_object(provenance_of(r), "backend");
    if (st == SNAP_OK && plugin.exists &&
        !js_set_new(to, "plugin", record_write(&plugin_type, &plugin)))
        st = no_memory(err);
    arena_release(&mem);
    return st;
}

snap_status results_set_gpu(results *r, js *gpu, snap_err *err) {
    return js_set_new(provenance_of(r), "gpu", gpu) ? SNAP_OK : no_memory(err);
}

/* ---- rows ---- */

static snap_status check_row(const results *r, const char *section, size_t index, js *row,
                             snap_err *err) {
    char at[64], path[64];
    (void)snprintf(at, sizeof at, "#/properties/%s/items", section);
    (void)snprintf(path, sizeof path, "%s[%zu]", section, index);
    return schema_check(&(schema){.root = r->schema}, at, row, path, err);
}

snap_status results_add(results *r, const char *section, js *row, snap_err *err) {
    js *rows = results_section(r, section);
    if (!rows)
        SNAP_BUG("no such section of a result file");
    if (!row)
        return no_memory(err);
    snap_status st = check_row(r, section, js_len(rows), row, err);
    if (st != SNAP_OK)
        js_free(row);
    else if (!js_push_new(rows, row))
        st = no_memory(err);
    return st;
}

snap_status results_add_all(results *r, const char *section, js *rows, snap_err *err) {
    snap_status st = js_is_array(rows) ? SNAP_OK : no_memory(err);
    for (size_t i = 0; i < js_len(rows) && st == SNAP_OK; i++)
        st = results_add(r, section, js_copy(js_at(rows, i)), err);
    js_free(rows);
    return st;
}

js *results_section(const results *r, const char *section) {
    return js_get_array(r->document, section);
}

js *results_document(const results *r) {
    return r->document;
}

/* ---- files ---- */

char *results_file_of(const char *path) {
    if (!fs_is_dir(path) && (text_ends(path, ".json") || fs_exists(path)))
        return strdup(path);
    return fs_join(path, "run.json");
}

static snap_status write_checked(const results *r, const char *path, snap_err *err) {
    snap_status st = schema_check(&(schema){.root = r->schema}, "#", r->document, "", err);
    if (st != SNAP_OK) {
        err_prefix(err, "the result is not written to '%s'", path);
        return st;
    }
    return js_write_file(r->document, path, err);
}

snap_status results_save(results *r, const char *path, snap_err *err) {
    char now[21];
    clock_utc(now);
    return js_set_str(provenance_of(r), "ended", now) ? write_checked(r, path, err)
                                                      : no_memory(err);
}

snap_status results_save_unfinished(results *r, const char *has, const char *path, snap_err *err) {
    return js_set_str(provenance_of(r), "interrupted", has) ? write_checked(r, path, err)
                                                            : no_memory(err);
}

const char *results_interrupted(const results *r) {
    return js_get_str(provenance_of(r), "interrupted");
}

/* The version is checked first, because it decides what the rest of the document means. */
static snap_status check_version(const js *document, int64_t *minor, snap_err *err) {
    const js *version = js_get_object(document, "schema");
    const char *name = version ? js_get_str(version, "name") : NULL;
    int64_t major = js_get_int(version, "major", -1);
    *minor = js_get_int(version, "minor", -1);
    if (!text_equal(name, kName) || major < 0 || *minor < 0)
        return err_set(err, SNAP_E_INPUT,
                       "not a result file of snapmla: key 'schema' must be "
                       "{\"name\":\"%s\",\"major\":N,\"minor\":N}",
                       kName);
    if (major > RESULTS_MAJOR)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "schema version %lld.%lld is newer than this program's %d.%d: use a newer "
                       "snapmla",
                       (long long)major, (long long)*minor, RESULTS_MAJOR, RESULTS_MINOR);
    return SNAP_OK;
}

static snap_status check_document(const results *r, snap_err *err) {
    int64_t minor;
    snap_status st = check_version(r->document, &minor, err);
    if (st == SNAP_OK)
        st = schema_check(&(schema){r->schema, minor > RESULTS_MINOR}, "#", r->document, "", err);
    return st;
}

/* Makes results of @document and takes it over. If @document is NULL, @why holds the error of
 * reading it. */
static snap_status adopt(results **out, js *document, const char *name, snap_err *why,
                         snap_err *err) {
    results *r = calloc(1, sizeof *r);
    snap_status st = SNAP_OK;
    *out = NULL;
    if (!r) {
        js_free(document);
        return no_memory(err);
    }
    r->document = document;
    TRY(r->document ? SNAP_OK : why->code);
    r->schema = schema_of_results(why);
    TRY(r->schema ? SNAP_OK : no_memory(why));
    st = check_document(r, why);
    err_prefix(why, "%s", name);
    TRY(st);
    *out = r;
    r = NULL;
cleanup:
    results_free(r);
    return st == SNAP_OK ? st : err_set(err, st, "%s", why->text);
}

snap_status results_load(results **out, const char *path, snap_err *err) {
    snap_err why = {0};
    js *document = js_parse_file(path, kFileLimit, &why); /* its messages name the file */
    return adopt(out, document, path, &why, err);
}

snap_status results_parse(results **out, const char *text, size_t n, const char *name,
                          snap_err *err) {
    snap_err why = {0};
    js *document = js_parse(text, n, name, &why);
    return adopt(out, document, name, &why, err);
}

/* ---- joining ---- */

static bool copy_keys(js *to, js *from) {
    bool ok = true;
    for (void *it = js_first(from); it && ok; it = js_next(from, it))
        ok = js_set_new(to, js_key(it), js_copy(js_value(it)));
    return ok;
}

/* The row of the same ceiling, or NULL. */
static js *same_ceiling(const js *rows, const js *row) {
    for (size_t i = 0; i < js_len(rows); i++)
        if (text_equal(js_get_str(js_at(rows, i), "name"), js_get_str(row, "name")) &&
            text_equal(js_get_str(js_at(rows, i), "origin"), js_get_str(row, "origin")) &&
            text_equal(js_get_str(js_at(rows, i), "arm"), js_get_str(row, "arm")))
            return js_at(rows, i);
    return NULL;
}

/* Whether row @a is better than row @b of the same ceiling: a higher rate or a shorter time. */
static bool is_better(const js *a, const js *b) {
    double x = js_get_num(a, "value", 0), y = js_get_num(b, "value", 0);
    return text_equal(js_get_str(a, "unit"), "ns") ? x < y : x > y;
}

/* Keeps the better of two values of one ceiling. */
static bool join_ceilings(js *to, const js *from) {
    bool ok = true;
    for (size_t i = 0; i < js_len(from) && ok; i++) {
        js *row = js_at(from, i), *known = same_ceiling(to, row);
        if (!known)
            ok = js_push_new(to, js_copy(row));
        else if (is_better(row, known))
            ok = copy_keys(known, row);
    }
    return ok;
}

static bool join_rows(js *to, const js *from) {
    bool ok = true;
    for (size_t i = 0; i < js_len(from) && ok; i++)
        ok = js_push_new(to, js_copy(js_at(from, i)));
    return ok;
}

/* A joined file lists its sources. For any other file, its own provenance is the source. */
static bool join_sources(js *to, const js *from) {
    js *sources = js_get_array(to, "sources");
    if (!sources && js_set_new(to, "sources", js_new_array()))
        sources = js_get_array(to, "sources");
    const js *more = js_get_array(from, "sources");
    if (more)
        return sources && join_rows(sources, more);
    return sources && js_push_new(sources, js_copy(js_get_object(from, "provenance")));
}

/* A section by its name, added if an older file lacks it; NULL when out of memory. */
static js *section_of(results *r, const char *name) {
    if (!results_section(r, name))
        (void)js_set_new(r->document, name, js_new_array());
    return results_section(r, name);
}

snap_status results_join(results *to, const results *from, snap_err *err) {
    bool ok = join_sources(to->document, from->document) &&
              join_ceilings(results_section(to, "ceilings"), results_section(from, "ceilings"));
    for (size_t i = 0; i < SECTIONS && ok; i++)
        if (strcmp(kSections[i], "ceilings") != 0)
            ok = join_rows(section_of(to, kSections[i]), results_section(from, kSections[i]));
    return ok ? SNAP_OK : no_memory(err);
}
