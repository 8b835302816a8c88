#include "harness/view/compare_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"

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

/* Adds the file that a name means to the list of missing ones, if there is no such file. */
static snap_status check_exists(const char *name, buf *missing, int *n, snap_err *err) {
    char *path = results_file_of(name);
    if (!path)
        return no_memory(err);
    if (!fs_exists(path))
        (void)buf_printf(missing, "%s'%s'", (*n)++ ? ", " : "", path);
    free(path);
    return missing->failed ? no_memory(err) : SNAP_OK;
}

/* Fails if files do not exist, before any file is read. The message names them all. */
static snap_status check_names(const char *const *names, int n, snap_err *err) {
    buf missing = {0};
    int n_missing = 0;
    snap_status st = SNAP_OK;
    for (int i = 0; i < n && st == SNAP_OK; i++)
        st = check_exists(names[i], &missing, &n_missing, err);
    if (st == SNAP_OK && n_missing)
        st = err_set(err, SNAP_E_USAGE, "%d of %d files do not exist: %s", n_missing, n,
                     buf_str(&missing));
    buf_release(&missing);
    return st;
}

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
static void sort_out(compare_files *in) {
    in->n_kept = 0;
    int n_refused = 0;
    for (int i = 0; i < in->n; i++)
        if (in->all[i].why) {
            in->refused[n_refused++] = (report_refused){in->all[i].name, in->all[i].why};
        } else {
            in->names[in->n_kept] = in->all[i].name;
            in->runs[in->n_kept++] = in->all[i].r;
        }
}

/* Refuses each file whose cells all have another input or another arithmetic than those of the
 * files before it. */
static snap_status refuse_unlike(compare_files *in, snap_err *err) {
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
    sort_out(in);
    return st;
}

snap_status compare_files_read(compare_files *in, const char *const *names, int n, snap_err *err) {
    const size_t many = (size_t)n;
    snap_status st = SNAP_OK;
    *in = (compare_files){.all = calloc(many, sizeof *in->all),
                          .n = n,
                          .runs = calloc(many, sizeof(results *)),
                          .names = calloc(many, sizeof(char *)),
                          .refused = calloc(many, sizeof *in->refused)};
    if (!in->all || !in->runs || !in->names || !in->refused)
        return no_memory(err);
    TRY(check_names(names, n, err));
    for (int i = 0; i < n; i++)
        in->all[i].name = names[i];
    for (int i = 0; i < in->n; i++)
        TRY(load(in, &in->all[i], err));
    sort_out(in);
    TRY(refuse_unlike(in, err));
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
    free(f->refused);
    *f = (compare_files){0};
}
