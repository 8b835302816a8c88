/* cmd_compare.c - `snapmla compare` */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/record/results.h"
#include "harness/view/report.h"

static const char *out_dir, *format_list = "html,md,csv,tex", *prices_path;

static const opt options[] = {
    {OPT_STR, "prices", 0, &prices_path, "FILE",
     "JSON object that maps a device's name, or a part of it, to an object with usd_per_hour, date "
     "and source; adds tokens per dollar to the table",
     0, 0},
    {.type = OPT_GROUP, .help = "Output"},
    {OPT_STR, "out", 'o', &out_dir, "DIR",
     "folder for the files; without it the report is printed as Markdown", 0, 0},
    {OPT_STR, "format", 0, &format_list, "LIST",
     "files to write: html, md, csv, tex, svg (figures), or all", 0, 0},
    {.type = OPT_END},
};

enum { kPricesLimit = 1 << 20 };

typedef struct {
    const char *name;
    results *r;      /* NULL: the file could not be read */
    const char *why; /* why the comparison leaves the file out; NULL = it does not */
} input;

/* The files that are compared, and those that are refused. */
typedef struct {
    input *all; /* [n] */
    int n;
    results **runs;          /* [n_kept] */
    const char **names;      /* [n_kept] */
    report_refused *refused; /* [n - n_kept] */
    int n_kept;
    arena texts; /* owns the reasons */
} inputs;

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for a comparison");
}

/* A file of another schema or version is refused, and the others are compared without it. */
static snap_status load(inputs *all, input *in, snap_err *err) {
    snap_err own = {0};
    char *path = results_file_of(in->name);
    if (!path)
        return no_memory(err);
    snap_status st = results_load(&in->r, path, &own);
    free(path);
    if (st != SNAP_E_INPUT && st != SNAP_E_UNSUPPORTED)
        return st == SNAP_OK ? st : err_set(err, st, "%s", own.text);
    in->why = arena_strdup(&all->texts, own.text);
    return in->why ? SNAP_OK : no_memory(err);
}

/* Lists the kept and the refused files again. */
static void sort_out(inputs *in) {
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
static snap_status refuse_unlike(inputs *in, snap_err *err) {
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

static snap_status read_inputs(inputs *in, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = 0; i < in->n; i++)
        TRY(load(in, &in->all[i], err));
    sort_out(in);
    TRY(refuse_unlike(in, err));
    if (in->n_kept < 2 && in->n_kept < in->n)
        st = err_set(err, SNAP_E_ENV, "nothing to compare: %s", in->refused[0].why);
cleanup:
    return st;
}

static snap_status load_prices(js **prices, snap_err *err) {
    *prices = prices_path ? js_parse_file(prices_path, kPricesLimit, err) : NULL;
    if (!prices_path)
        return SNAP_OK;
    if (!*prices)
        return SNAP_E_INPUT;
    return js_is_object(*prices)
               ? SNAP_OK
               : err_set(err, SNAP_E_USAGE, "%s: must be a JSON object of prices", prices_path);
}

static snap_status print(const report_model *m, const buf *paths, snap_err *err) {
    buf text = {0};
    if (!out_dir)
        report_markdown(m, &text);
    snap_status st = buf_check(&text, "the comparison", err);
    (void)fputs(out_dir ? buf_str(paths) : buf_str(&text), stdout);
    buf_release(&text);
    return st;
}

static snap_status print_documents(results *const *runs, int n, snap_err *err) {
    js *all = js_new_array();
    bool ok = all != NULL;
    for (int i = 0; i < n && ok; i++)
        ok = js_push_new(all, js_copy(results_document(runs[i])));
    snap_status st = ok ? print_json(all, err) : no_memory(err);
    js_free(all);
    return st;
}

static snap_status compare(inputs *in, const opt_shared *shared, snap_err *err) {
    report_model *m = NULL;
    js *prices = NULL;
    buf paths = {0};
    unsigned formats;
    snap_status st = SNAP_OK;
    TRY(report_parse_formats(format_list, &formats, err));
    TRY(load_prices(&prices, err));
    TRY(read_inputs(in, err));
    const int n_refused = in->n - in->n_kept;
    TRY(report_model_new(&m, in->runs, in->names, in->n_kept, err));
    TRY(report_compare(m, prices, in->refused, (size_t)n_refused, err));
    if (out_dir)
        TRY(report_write(m, out_dir, formats, &paths, err));
    TRY(shared->json ? print_documents(in->runs, in->n_kept, err) : print(m, &paths, err));
    if (n_refused)
        st = err_set(err, SNAP_E_ENV, "%d of %d files refused: %s", n_refused, in->n,
                     in->refused[0].why);
cleanup:
    report_model_free(m);
    js_free(prices);
    buf_release(&paths);
    return st;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    const size_t n = (size_t)shared->n_args;
    inputs in = {.all = calloc(n, sizeof *in.all),
                 .n = shared->n_args,
                 .runs = calloc(n, sizeof(results *)),
                 .names = calloc(n, sizeof(char *)),
                 .refused = calloc(n, sizeof *in.refused)};
    bool ok = in.all && in.runs && in.names && in.refused;
    for (size_t i = 0; ok && i < n; i++)
        in.all[i].name = shared->args[i];
    snap_status st = ok ? compare(&in, shared, err) : no_memory(err);
    for (size_t i = 0; in.all && i < n; i++)
        results_free(in.all[i].r);
    arena_release(&in.texts);
    free(in.all);
    free(in.runs);
    free(in.names);
    free(in.refused);
    return st;
}

const opt_command cmd_compare = {
    .name = "compare",
    .summary = "compare results of several machines",
    .synopsis = "FILE_or_DIR FILE_or_DIR... [options]",
    .about = "Puts results of several machines side by side, of any vendor: times, percent of\n"
             "each device's own measured roofline, tokens per joule, tokens per dollar, and\n"
             "speed relative to the first file. A row that was measured under other conditions\n"
             "than the first file's row is marked and has no relative speed. A file of another\n"
             "schema is refused, and so is one whose cells all have another input or another\n"
             "arithmetic than the files before it: the page says why, the other files are\n"
             "compared, and the exit code is 6. The last table says which cells each file\n"
             "lacks, with the command that measures them.",
    .examples = "  snapmla compare a.json b.json\n"
                "  snapmla compare a.json b.json c.json --prices prices.json --out comparison",
    .options = options,
    .min_args = 2,
    .max_args = -1,
    .run = run,
};
