#include "harness/fetch/manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/http.h"
#include "base/json.h"
#include "base/share.h"
#include "base/term.h"
#include "base/text.h"

enum { kFileLimit = 4 << 20 };

/* ---- values ---- */

static snap_status copy(arena *mem, const char *s, const char **out, const char *where,
                        snap_err *err) {
    *out = arena_strdup(mem, s);
    return *out ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
}

static snap_status need_text(const js *o, const char *key, arena *mem, const char **out,
                             const char *where, snap_err *err) {
    const char *s;
    snap_status st = js_need_str(o, key, &s, where, err);
    if (st == SNAP_OK && !*s)
        st = err_set(err, SNAP_E_INPUT, "%s: '%s' must not be empty", where, key);
    return st == SNAP_OK ? copy(mem, s, out, where, err) : st;
}

/* Reads text or null. *out is NULL if the value is null or absent. */
static snap_status maybe_text(const js *o, const char *key, arena *mem, const char **out,
                              const char *where, snap_err *err) {
    const js *v = js_get(o, key);
    *out = NULL;
    if (!v || js_is_null(v))
        return SNAP_OK;
    if (!js_str(v))
        return err_set(err, SNAP_E_INPUT, "%s: '%s' must be text or null", where, key);
    return copy(mem, js_str(v), out, where, err);
}

/* True if the path stays inside the folder it is joined to and needs no escapes in a URL. */
static bool is_safe_path(const char *path) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
    size_t n = strlen(path);
    if (!n || path[0] == '/' || path[n - 1] == '/' || strspn(path, letters) != n)
        return false;
    for (const char *part = path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
        if (part[0] == '.' || part[0] == '/')
            return false;
    return true;
}

static bool is_sha256(const char *s) {
    return strlen(s) == HASH_HEX - 1 && strspn(s, "0123456789abcdef") == HASH_HEX - 1;
}

/* ---- files and sets ---- */

static snap_status read_file(const js *o, arena *mem, manifest_file *f, const char *where,
                             snap_err *err) {
    snap_status st;
    const char *convert = NULL;
    TRY(need_text(o, "path", mem, &f->path, where, err));
    TRY(need_text(o, "url", mem, &f->url, where, err));
    TRY(maybe_text(o, "sha256", mem, &f->sha256, where, err));
    TRY(maybe_text(o, "convert", mem, &convert, where, err));
    f->bytes = js_get_int(o, "bytes", -1);
    f->convert = convert != NULL;
    f->pages = convert && strcmp(convert, "hf_pages") == 0;
    if (!is_safe_path(f->path))
        TRY(err_set(err, SNAP_E_INPUT, "%s: 'path' must stay in the data folder, not '%s'", where,
                    f->path));
    if (f->sha256 && !is_sha256(f->sha256))
        TRY(err_set(err, SNAP_E_INPUT, "%s: 'sha256' must be 64 lower-case digits", where));
    if (convert && !f->pages && strcmp(convert, "hf_rows") != 0)
        TRY(err_set(err, SNAP_E_INPUT,
                    "%s: 'convert' must be null, 'hf_rows' or 'hf_pages', not '%s'", where,
                    convert));
    snap_err url = {0};
    if (http_check_url(f->url, &url) != SNAP_OK)
        TRY(err_set(err, SNAP_E_INPUT, "%s: 'url': %s", where, url.text));
cleanup:
    return st;
}

static snap_status read_files(const js *o, arena *mem, manifest_set *s, const char *where,
                              snap_err *err) {
    js *files;
    snap_status st = js_need_array(o, "files", &files, where, err);
    if (st != SNAP_OK)
        return st;
    if (!js_len(files))
        return err_set(err, SNAP_E_INPUT, "%s: 'files' is empty", where);
    s->files = arena_alloc(mem, js_len(files), sizeof *s->files);
    if (!s->files)
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
    for (size_t i = 0; i < js_len(files) && st == SNAP_OK; i++)
        st = read_file(js_at(files, i), mem, &s->files[s->n_files++], where, err);
    return st;
}

static snap_status read_set(const js *o, manifest *m, const char *path, snap_err *err) {
    snap_status st;
    manifest_set s = {0};
    char where[400];
    (void)snprintf(where, sizeof where, "%.200s: set %zu", path, m->n + 1);
    TRY(need_text(o, "name", &m->mem, &s.name, where, err));
    (void)snprintf(where, sizeof where, "%.200s: set '%.80s'", path, s.name);
    TRY(need_text(o, "title", &m->mem, &s.title, where, err));
    TRY(need_text(o, "licence", &m->mem, &s.licence, where, err));
    TRY(need_text(o, "home", &m->mem, &s.home, where, err));
    TRY(maybe_text(o, "notice", &m->mem, &s.notice, where, err));
    TRY(read_files(o, &m->mem, &s, where, err));
    s.rows = js_get_int(o, "rows", -1);
    s.large = js_get_bool(o, "large", false);
    if (manifest_find(m, s.name))
        TRY(err_set(err, SNAP_E_INPUT, "%s: the name occurs twice", where));
    m->sets[m->n++] = s;
cleanup:
    return st;
}

static snap_status check_schema(const js *doc, const char *path, snap_err *err) {
    const js *schema = js_get_object(doc, "schema");
    if (!text_equal(js_get_str(schema, "name"), "snapmla.manifest"))
        return err_set(err, SNAP_E_INPUT, "%s: not a manifest of data sets", path);
    if (js_get_int(schema, "major", 0) != 1)
        return err_set(err, SNAP_E_INPUT,
                       "%s: the manifest has version %lld, but this build reads version 1", path,
                       (long long)js_get_int(schema, "major", 0));
    return SNAP_OK;
}

snap_status manifest_load(manifest *out, const char *path, snap_err *err) {
    *out = (manifest){0};
    js *doc = js_parse_file(path, kFileLimit, err), *sets;
    if (!doc)
        return err && err->code != SNAP_OK ? err->code : SNAP_E_INPUT;
    snap_status st;
    TRY(check_schema(doc, path, err));
    TRY(js_need_array(doc, "sets", &sets, path, err));
    out->sets = arena_alloc(&out->mem, js_len(sets) + 1, sizeof *out->sets);
    if (!out->sets)
        TRY(err_set(err, SNAP_E_NOMEM, "%s: out of memory", path));
    for (size_t i = 0; i < js_len(sets); i++)
        TRY(read_set(js_at(sets, i), out, path, err));
cleanup:
    js_free(doc);
    return st;
}

void manifest_release(manifest *m) {
    arena_release(&m->mem);
    *m = (manifest){0};
}

/* ---- queries ---- */

const manifest_set *manifest_find(const manifest *m, const char *name) {
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->sets[i].name, name) == 0)
            return &m->sets[i];
    return NULL;
}

/* A task set that is read from several files has one digest: that of the list of its files'
 * digests, in the order of the manifest. If the user limits the number of problems, some files
 * before the last one may not be read. Returns whether @sha256 is that digest for the first @n
 * files and the last file of @s. */
static bool is_digest_of(const manifest_set *s, size_t n, const char *sha256) {
    buf lines = {0};
    char sum[HASH_HEX];
    for (size_t i = 0; i < n; i++)
        (void)buf_printf(&lines, "%s\n", s->files[i].sha256);
    (void)buf_printf(&lines, "%s\n", s->files[s->n_files - 1].sha256);
    bool same = buf_check(&lines, "digests", NULL) == SNAP_OK &&
                hash_bytes(buf_str(&lines), lines.len, sum, NULL) == SNAP_OK &&
                strcmp(sum, sha256) == 0;
    buf_release(&lines);
    return same;
}

/* The checksum of a converted file is not that of its download. */
bool manifest_is_checked(const manifest_file *f) {
    return f->sha256 && !f->convert;
}

size_t manifest_unverified(const manifest_set *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->n_files; i++)
        n += !manifest_is_checked(&s->files[i]);
    return n;
}

const char *manifest_verdict(const manifest *m, const char *task, const char *sha256) {
    const manifest_set *s = manifest_find(m, task);
    size_t known = 0;
    for (size_t i = 0; s && i < s->n_files; i++) {
        if (!manifest_is_checked(&s->files[i]))
            continue;
        known++;
        if (strcmp(s->files[i].sha256, sha256) == 0)
            return "match";
    }
    for (size_t n = 1; s && known == s->n_files && n < s->n_files; n++)
        if (is_digest_of(s, n, sha256))
            return "match";
    return !s ? "unknown" : known == s->n_files ? "differs" : "unverified";
}

const char *manifest_check(const char *task, const char *sha256) {
    manifest m = {0};
    snap_err err = {0};
    const char *verdict = "unknown";
    char *path = share_find("datasets/manifest.json");
    if (!path)
        term_warn("datasets/manifest.json was not found: data is not compared with it");
    else if (manifest_load(&m, path, &err) != SNAP_OK)
        term_warn("data is not compared with the manifest: %s", err.text);
    else
        verdict = manifest_verdict(&m, task, sha256);
    manifest_release(&m);
    free(path);
    return verdict;
}
