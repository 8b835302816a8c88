#include "harness/view/compare_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for a comparison");
}

/* Sets in->why if the clock of the machine ran backwards during the run, because the times of such
 * a run are not reliable. The times are text in UTC, whose alphabetical order is that of time. */
static snap_status check_clock(compare_files *all, compare_file *in, snap_err *err) {
    const js *from = js_get_object(results_document(in->r), "provenance");
    const char *started = js_get_str(from, "started"), *ended = js_get_str(from, "ended");
    if (!started || !ended || !ended[0] || strcmp(started, ended) <= 0)
        return SNAP_OK;
    buf why = {0};
    if (buf_printf(&why, "%s: the clock ran backwards: the run ended at %s, before it began at %s",
                   in->name, ended, started))
        in->why = arena_strdup(&all->texts, buf_str(&why));
    buf_release(&why);
    return in->why ? SNAP_OK : no_memory(err);
}

/* ---- the files of each name ---- */

enum { PARTS = 4 };

/* What ci/vendor.sh writes into a folder, and the ends of the names under which it is kept. */
static const char *const kInFolder[PARTS] = {"/burst.json", "/sustained.json", "/fidelity.json",
                                             "/eval/run.json"};
static const char *const kKept[PARTS] = {"-burst.json", "-sustained.json", "-fidelity.json",
                                         "-eval.json"};

static snap_status add(compare_files *in, const char *name, int given) {
    compare_file *all = realloc(in->all, ((size_t)in->n + 1) * sizeof *all);
    if (!all)
        return SNAP_E_NOMEM;
    in->all = all;
    in->all[in->n++] = (compare_file){.name = name, .given = given};
    return SNAP_OK;
}

/* Adds the files of ci/vendor.sh that a name means, as far as they exist. */
static snap_status add_parts(compare_files *in, const char *name, int given,
                             const char *const ends[PARTS]) {
    snap_status st = SNAP_OK;
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] == '/')
        n--;
    for (int i = 0; i < PARTS && st == SNAP_OK; i++) {
        buf path = {0};
        char *kept = NULL;
        if (!buf_printf(&path, "%.*s%s", (int)n, name, ends[i]))
            st = SNAP_E_NOMEM;
        else if (fs_exists(buf_str(&path)))
            st = (kept = arena_strdup(&in->texts, buf_str(&path))) ? add(in, kept, given)
                                                                   : SNAP_E_NOMEM;
        buf_release(&path);
    }
    return st;
}

/* Adds the files that a name means. If there are none, the name is added to the list of missing
 * ones. */
static snap_status find(compare_files *in, const char *name, int given, buf *missing, int *n,
                        snap_err *err) {
    const int before = in->n;
    char *path = results_file_of(name);
    snap_status st = path ? SNAP_OK : SNAP_E_NOMEM;
    if (path && fs_exists(path))
        st = add(in, name, given);
    else if (path && !text_ends(name, ".json"))
        st = add_parts(in, name, given, fs_is_dir(name) ? kInFolder : kKept);
    if (st == SNAP_OK && in->n == before)
        (void)buf_printf(missing, "%s'%s'", (*n)++ ? ", " : "", path);
    free(path);
    return st != SNAP_OK || missing->failed ? no_memory(err) : SNAP_OK;
}

/* Fails if files do not exist, before any file is read. The message names them all. */
static snap_status find_all(compare_files *in, const char *const *names, int n, snap_err *err) {
    buf missing = {0};
    int n_missing = 0;
    snap_status st = SNAP_OK;
    for (int i = 0; i < n && st == SNAP_OK; i++)
        st = find(in, names[i], i, &missing, &n_missing, err);
    if (st == SNAP_OK && n_missing)
        st = err_set(err, SNAP_E_USAGE, "%d of %d files do not exist: %s", n_missing, n,
                     buf_str(&missing));
    buf_release(&missing);
    return st;
}

/* ---- files that are kept and files that are refused ---- */

/* A file of another schema or version is refused, and so is one whose clock ran backwards during
 * the run. The other files are compared without it. */
static snap_status load(compare_files *all, compare_file *in, snap_err *err) {
    snap_err own = {0};
    char *path = results_file_of(in->name);
    if (!path)
        return no_memory(err);
    snap_status st = results_load(&in->r, path, &own);
    free(path);
    if (st != SNAP_E_INPUT && st != SNAP_E_UNSUPPORTED)
        return st == SNAP_OK ? check_clock(all, in, err) : err_set(err, st, "%s", own.text);
    in->why = arena_strdup(&all->texts, own.text);
    return in->why ? SNAP_OK : no_memory(err);
}

/* Lists the kept and the refused files again. */
static void sort_out(compare_files *in, const char *const *given) {
    int n_refused = 0, last = -1; /* last: index of the name of the last kept file */
    in->n_kept = in->n_devices = 0;
    for (int i = 0; i < in->n; i++) {
        const compare_file *f = &in->all[i];
        if (f->why) {
            in->refused[n_refused++] = (report_refused){f->name, f->why};
            continue;
        }
        if (f->given != last)
            in->given[in->n_devices++] = given[f->given];
        last = f->given;
        in->device_of[in->n_kept] = in->n_devices - 1;
        in->names[in->n_kept] = f->name;
        in->runs[in->n_kept++] = f->r;
    }
}

/* Refuses each file whose cells all have another input or another arithmetic than those of the
 * files before it. */
static snap_status refuse_unlike(compare_files *in, const char *const *given, snap_err *err) {
    report_model *m = NULL;
    bool *refused = calloc((size_t)in->n, sizeof *refused);
    if (!refused)
        return no_memory(err);
    snap_status st = report_model_new(&m, in->runs, in->names, in->n_kept, err);
    for (int i = 0, k = 0; st == SNAP_OK && i < in->n; i++) {
        buf why = {0};
        if (in->all[i].why)
            continue;
        refused[k] = report_unlike(m, k, refused, &why);
        if (refused[k] &&
            (why.failed || !(in->all[i].why = arena_strdup(&in->texts, buf_str(&why)))))
            st = no_memory(err);
        buf_release(&why);
        k++;
    }
    report_model_free(m);
    free(refused);
    sort_out(in, given);
    return st;
}

snap_status compare_files_read(compare_files *in, const char *const *names, int n, snap_err *err) {
    snap_status st = SNAP_OK;
    *in = (compare_files){0};
    TRY(find_all(in, names, n, err));
    const size_t many = (size_t)in->n;
    in->runs = calloc(many, sizeof(results *));
    in->names = calloc(many, sizeof(char *));
    in->given = calloc(many, sizeof(char *));
    in->device_of = calloc(many, sizeof *in->device_of);
    in->refused = calloc(many, sizeof *in->refused);
    if (!in->runs || !in->names || !in->given || !in->device_of || !in->refused)
        return no_memory(err);
    for (int i = 0; i < in->n; i++)
        TRY(load(in, &in->all[i], err));
    sort_out(in, names);
    TRY(refuse_unlike(in, names, err));
    if (in->n_kept < 2 && in->n_kept < in->n)
        st = err_set(err, SNAP_E_ENV, "nothing to compare: %s", in->refused[0].why);
cleanup:
    return st;
}

void compare_files_release(compare_files *f) {
    for (int i = 0; f->all && i < f->n; i++)
        results_free(f->all[i].r);
    arena_release(&f->texts);
    free(f->all);
    free(f->runs);
    free(f->names);
    free(f->given);
    free(f->device_of);
    free(f->refused);
    *f = (compare_files){0};
}
