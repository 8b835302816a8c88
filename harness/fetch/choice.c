#include "harness/fetch/choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/share.h"
#include "harness/fetch/fetch.h"

void fetch_choice_release(fetch_choice *c) {
    free(c->chosen);
    manifest_release(&c->all);
}

static snap_status unknown_name(const fetch_choice *c, const char *name, snap_err *err) {
    buf names = {0};
    for (size_t i = 0; i < c->all.n; i++)
        (void)buf_printf(&names, "%s%s", i ? ", " : "", c->all.sets[i].name);
    (void)err_set(err, SNAP_E_USAGE, "no data set '%s' in the manifest: it has %s", name,
                  buf_str(&names));
    buf_release(&names);
    return SNAP_E_USAGE;
}

static snap_status choose(fetch_choice *c, const fetch_wanted *w, snap_err *err) {
    c->chosen = calloc(c->all.n + 1, sizeof *c->chosen);
    if (!c->chosen)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the data sets");
    for (int i = 0; i < w->n; i++) {
        const manifest_set *s = manifest_find(&c->all, w->names[i]);
        if (!s)
            return unknown_name(c, w->names[i], err);
        c->chosen[s - c->all.sets] = true;
    }
    for (size_t i = 0; i < c->all.n && !w->n; i++)
        c->chosen[i] = w->large || !c->all.sets[i].large;
    return SNAP_OK;
}

snap_status fetch_choose(fetch_choice *c, const fetch_wanted *w, snap_err *err) {
    snap_status st;
    char *path = w->path ? strdup(w->path) : share_find("datasets/manifest.json");
    *c = (fetch_choice){0};
    if (!path)
        TRY(err_set(err, SNAP_E_USAGE,
                    "datasets/manifest.json is nowhere: set SNAPMLA_SHARE to the folder that holds "
                    "datasets/, or give --manifest"));
    TRY(manifest_load(&c->all, path, err));
    TRY(choose(c, w, err));
cleanup:
    free(path);
    return st;
}

/* ---- listing the sets ---- */

/* What DIR holds of a set: "differs" if a file has another checksum, else the state that all files
 * share, else "partial". */
static snap_status set_state(const manifest_set *s, const char *dir, const char **out,
                             snap_err *err) {
    snap_status st = SNAP_OK;
    fetch_state first = FETCH_ABSENT, state = FETCH_ABSENT;
    bool same = true, differs = false;
    for (size_t i = 0; i < s->n_files && st == SNAP_OK; i++) {
        st = fetch_check(&s->files[i], dir, &state, err);
        first = i ? first : state;
        same = same && state == first;
        differs = differs || state == FETCH_DIFFERS;
    }
    *out = fetch_state_name(differs ? FETCH_DIFFERS : same ? first : FETCH_PARTIAL);
    return st;
}

static int64_t set_bytes(const manifest_set *s) {
    int64_t sum = 0;
    for (size_t i = 0; i < s->n_files; i++) {
        if (s->files[i].bytes < 0)
            return -1;
        sum += s->files[i].bytes;
    }
    return sum;
}

static snap_status add_set(js *rows, const manifest_set *s, const char *dir, snap_err *err) {
    const char *state;
    snap_status st = set_state(s, dir, &state, err);
    if (st != SNAP_OK)
        return st;
    int64_t bytes = set_bytes(s);
    js *o = js_new_object();
    bool ok = o && js_set_str(o, "name", s->name) && js_set_str(o, "state", state) &&
              js_set_int(o, "rows", s->rows) && js_set_bool(o, "large", s->large) &&
              js_set_new(o, "bytes", bytes < 0 ? js_new_null() : js_new_int(bytes)) &&
              js_set_int(o, "files", (int64_t)s->n_files) &&
              js_set_int(o, "unverified", (int64_t)manifest_unverified(s)) &&
              js_set_str(o, "title", s->title) && js_set_str(o, "licence", s->licence) &&
              js_set_str(o, "home", s->home) && js_set_new(o, "notice", js_new_str(s->notice));
    ok = js_push_new(rows, o) && ok;
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for the list");
}

snap_status fetch_list(const fetch_choice *c, const char *dir, js **out, snap_err *err) {
    snap_status st = SNAP_OK;
    *out = js_new_array();
    for (size_t i = 0; i < c->all.n && st == SNAP_OK; i++)
        if (c->chosen[i])
            st = add_set(*out, &c->all.sets[i], dir, err);
    return st;
}
