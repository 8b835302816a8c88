/* load.c - finds the files of formats: shipped ones by name, others by path. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/share.h"
#include "base/text.h"
#include "kernels/format/format.h"

enum {
    kMostShipped = 128,
    kFileLimit = 1 << 20, /* bytes of a file */
};

static const char kFolder[] = "configs/formats";

static bool is_path(const char *name) {
    return strchr(name, '/') || text_ends(name, ".json");
}

static int is_json(const struct dirent *e) {
    return text_ends(e->d_name, ".json") && e->d_name[0] != '.';
}

/* Compares two file names without their ".json". The order does not depend on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b) {
    char x[sizeof(*a)->d_name], y[sizeof(*b)->d_name];
    (void)snprintf(x, sizeof x, "%.*s", (int)strlen((*a)->d_name) - 5, (*a)->d_name);
    (void)snprintf(y, sizeof y, "%.*s", (int)strlen((*b)->d_name) - 5, (*b)->d_name);
    return strcmp(x, y);
}

snap_status cache_format_each(cache_format_fn fn, void *ctx, snap_err *err) {
    struct dirent **at = NULL;
    char *folder = share_find(kFolder);
    snap_status st = SNAP_OK;
    if (!folder)
        return err_set(err, SNAP_E_IO, "cannot find the folder %s of the shipped cache formats",
                       kFolder);
    int n = scandir(folder, &at, is_json, by_name);
    if (n < 0)
        st = err_set_errno(err, "cannot list %s", folder);
    for (int i = 0; i < n; i++) {
        at[i]->d_name[strlen(at[i]->d_name) - strlen(".json")] = '\0';
        if (st == SNAP_OK)
            st = fn(ctx, at[i]->d_name, err);
        free(at[i]);
    }
    free(at);
    free(folder);
    return st;
}

/* ---- one format ------------------------------------------------------------------------------ */

typedef struct {
    char *at[kMostShipped + 1]; /* ends with NULL */
    int n;
    buf list; /* "A, B, bf16" */
} shipped_names;

static snap_status add_name(void *ctx, const char *name, snap_err *err) {
    shipped_names *s = ctx;
    if (s->n == kMostShipped)
        return SNAP_OK;
    s->at[s->n] = strdup(name);
    if (!s->at[s->n])
        return err_set(err, SNAP_E_NOMEM, "out of memory for the names of formats");
    buf_printf(&s->list, "%s%s", s->n++ ? ", " : "", name);
    return SNAP_OK;
}

static snap_status unknown_name(const char *name, snap_err *err) {
    shipped_names s = {0};
    char hint[NEAREST_HINT];
    snap_status st = cache_format_each(add_name, &s, err);
    if (st == SNAP_OK)
        st = err_set(
            err, SNAP_E_USAGE,
            "unknown cache format '%.60s'%s; shipped are %s; a file's name ends with .json", name,
            nearest_hint(name, (const char *const *)s.at, "", hint), buf_str(&s.list));
    for (int i = 0; i < s.n; i++)
        free(s.at[i]);
    buf_release(&s.list);
    return st;
}

/* The path of a shipped format, which the caller frees; NULL if there is none. */
static char *shipped_path(const char *name) {
    char path[sizeof kFolder + 80];
    if (strlen(name) > 64)
        return NULL;
    (void)snprintf(path, sizeof path, "%s/%s.json", kFolder, name);
    return share_find(path);
}

char *cache_format_path(const char *name) {
    return is_path(name) ? strdup(name) : shipped_path(name);
}

snap_status cache_format_load(cache_format *out, const char *name, int d_c, int d_r,
                              snap_err *err) {
    *out = (cache_format){0};
    char *path = cache_format_path(name);
    if (!path && is_path(name))
        return err_set(err, SNAP_E_NOMEM, "out of memory for the name of a format");
    if (!path)
        return unknown_name(name, err);
    js *doc = js_parse_file(path, kFileLimit, err);
    snap_status st = doc                     ? cache_format_read(out, doc, path, d_c, d_r, err)
                     : err && err->code != 0 ? err->code
                                             : SNAP_E_INPUT;
    js_free(doc);
    free(path);
    return st;
}
