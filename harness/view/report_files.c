#include "harness/view/report_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "harness/view/report.h"

enum { kDocumentLimit = 16 << 20 };

typedef struct {
    const report_files_options *o;
    report_paths files;
    results **runs; /* [n_runs]; an entry is NULL before its file is read; after joining only the
                       first is left */
    int n_runs;
    report_model *model;
    buf written; /* the paths of the files written, one per line */
} request;

/* ---- the result files ---- */

static snap_status load(request *q, snap_err *err) {
    for (int i = 0; i < q->files.n; i++) {
        char *path = results_file_of(q->files.paths[i]);
        if (!path)
            return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", q->files.paths[i]);
        snap_status st = results_load(&q->runs[i], path, err);
        free(path);
        if (st != SNAP_OK)
            return st;
    }
    return SNAP_OK;
}

static const char *machine_of(const results *r) {
    const js *provenance = js_get_object(results_document(r), "provenance");
    const char *hash = js_get_str(js_get_object(provenance, "host"), "name_sha256");
    return hash ? hash : "";
}

/* A joined file has one set of ceilings, so the files that have ceilings must be from one
 * machine. */
static snap_status check_one_machine(const request *q, snap_err *err) {
    int first = -1;
    for (int i = 0; i < q->n_runs; i++) {
        if (js_len(results_section(q->runs[i], "ceilings")) == 0)
            continue;
        if (first >= 0 && strcmp(machine_of(q->runs[first]), machine_of(q->runs[i])) != 0)
            return err_set(
                err, SNAP_E_USAGE,
                "'%s' and '%s' were measured on different machines: report them without --join",
                q->files.paths[first], q->files.paths[i]);
        first = first < 0 ? i : first;
    }
    return SNAP_OK;
}

/* Replaces the files by one document with the rows of all files. */
static snap_status join(request *q, snap_err *err) {
    static const char *const kName[] = {"run.json"};
    results *joined = NULL;
    snap_status st = SNAP_OK;
    TRY(check_one_machine(q, err));
    TRY(results_new(&joined, "report", q->o->config, 0, err));
    for (int i = 0; i < q->n_runs; i++)
        TRY(results_join(joined, q->runs[i], err));
    for (int i = 0; i < q->n_runs; i++) {
        results_free(q->runs[i]);
        q->runs[i] = NULL;
    }
    q->runs[0] = joined;
    joined = NULL;
    q->n_runs = 1;
    q->files = (report_paths){kName, 1};
cleanup:
    results_free(joined);
    return st;
}

static snap_status save_joined(request *q, snap_err *err) {
    snap_status st = SNAP_OK;
    char *path = fs_join(q->o->out, "run.json");
    TRY(path ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", q->o->out));
    TRY(fs_mkdirs(q->o->out, err));
    TRY(results_save(q->runs[0], path, err));
    (void)buf_printf(&q->written, "%s\n", path);
cleanup:
    free(path);
    return st;
}

/* ---- samples and documents ---- */

static snap_status add_samples(request *q, report_paths folders, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < folders.n && q->o->samples && st == SNAP_OK; i++) {
        char *path = fs_join(folders.paths[i], "samples.jsonl");
        if (!path)
            st = err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", folders.paths[i]);
        else if (fs_exists(path))
            st = report_model_add_samples(q->model, folders.paths[i], path, q->o->keep_gpqa_text,
                                          err);
        free(path);
    }
    return st;
}

typedef snap_status (*add_fn)(report_model *m, const js *doc, const char *name, snap_err *err);

static snap_status add_documents(report_model *m, report_paths files, add_fn add, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < files.n && st == SNAP_OK; i++) {
        snap_err why = {0};
        js *doc = js_parse_file(files.paths[i], kDocumentLimit, &why);
        st = doc ? add(m, doc, files.paths[i], err) : err_set(err, why.code, "%s", why.text);
        js_free(doc);
    }
    return st;
}

static snap_status make_paper(request *q, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(report_paper(q->model, err));
    TRY(add_documents(q->model, q->o->reported, report_add_reported, err));
    TRY(add_documents(q->model, q->o->e2e, report_add_e2e, err));
cleanup:
    return st;
}

/* ---- the report ---- */

static snap_status print(const request *q, buf *out, snap_err *err) {
    snap_status st = SNAP_OK;
    if (q->o->json)
        st = js_write_shown(results_document(q->runs[0]), JS_PRETTY, out, err);
    else if (q->o->out)
        (void)buf_append(out, buf_str(&q->written), q->written.len - (q->written.len > 0));
    else
        report_markdown(q->model, out);
    (void)buf_puts(out, "\n");
    return st == SNAP_OK ? buf_check(out, "the report", err) : st;
}

static void release(request *q) {
    report_model_free(q->model);
    for (int i = 0; q->runs && i < q->n_runs; i++)
        results_free(q->runs[i]);
    free(q->runs);
    buf_release(&q->written);
}

snap_status report_files(report_paths files, const report_files_options *o, buf *printed,
                         snap_err *err) {
    snap_status st = SNAP_OK;
    unsigned formats;
    request q = {.o = o, .files = files, .n_runs = files.n};
    if (!files.n && (o->join || o->json))
        return err_set(err, SNAP_E_USAGE, "--join and --json need a result file");
    q.runs = calloc((size_t)files.n + 1, sizeof(results *));
    TRY(q.runs ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a report"));
    TRY(report_parse_formats(o->formats, &formats, err));
    TRY(o->join && !o->out ? err_set(err, SNAP_E_USAGE, "--join needs a folder: give --out DIR")
                           : SNAP_OK);
    TRY(load(&q, err));
    if (o->join || (o->json && files.n > 1))
        TRY(join(&q, err));
    if (o->join)
        TRY(save_joined(&q, err));
    TRY(report_model_new(&q.model, q.runs, q.files.paths, q.n_runs, err));
    TRY(o->paper ? make_paper(&q, err) : add_samples(&q, files, err));
    if (o->out)
        TRY(report_write(q.model, o->out, formats, &q.written, err));
    TRY(print(&q, printed, err));
cleanup:
    release(&q);
    return st;
}
