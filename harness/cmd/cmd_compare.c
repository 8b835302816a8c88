/* cmd_compare.c - `snapmla compare` */
#include <stdio.h>

#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/view/compare_files.h"

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
    snap_status st =
        ok ? print_json(all, err) : err_set(err, SNAP_E_NOMEM, "out of memory for a comparison");
    js_free(all);
    return st;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    compare_files in = {0};
    report_model *m = NULL;
    js *prices = NULL;
    buf paths = {0};
    unsigned formats;
    snap_status st = SNAP_OK;
    TRY(report_parse_formats(format_list, &formats, err));
    TRY(load_prices(&prices, err));
    TRY(compare_files_read(&in, shared->args, shared->n_args, err));
    const int n_refused = in.n - in.n_kept;
    TRY(report_model_new(&m, in.runs, in.names, in.n_kept, err));
    TRY(report_group(m, in.device_of, in.given, in.n_devices, err));
    TRY(report_compare(m, prices, in.refused, (size_t)n_refused, err));
    if (out_dir)
        TRY(report_write(m, out_dir, formats, &paths, err));
    TRY(shared->json ? print_documents(in.runs, in.n_kept, err) : print(m, &paths, err));
    if (n_refused)
        st = err_set(err, SNAP_E_ENV, "%d of %d files refused: %s", n_refused, in.n,
                     in.refused[0].why);
cleanup:
    report_model_free(m);
    js_free(prices);
    buf_release(&paths);
    compare_files_release(&in);
    return st;
}

const opt_command cmd_compare = {
    .name = "compare",
    .summary = "compare results of several devices",
    .synopsis = "DEVICE DEVICE... [options]",
    .about = "Puts results of several devices on one page, of any vendor: speed, percent of each\n"
             "device's own measured roofline, tokens per joule, tokens per dollar, numerical\n"
             "errors and accuracies. Each DEVICE is one of these:\n\n"
             "  FILE.json   a result file\n"
             "  RUN         the folder of a run, which has run.json\n"
             "  OUT         a folder of ci/vendor.sh, with burst.json, sustained.json,\n"
             "              fidelity.json and eval/run.json, as far as they exist\n"
             "  NAME        what the names of several files begin with: NAME-burst.json,\n"
             "              NAME-sustained.json, NAME-fidelity.json and NAME-eval.json\n\n"
             "The first table has one line for each device. Its means are over the cells that all\n"
             "devices share, so that they rank the devices. A row that was measured under other\n"
             "conditions than the first device's row is marked and has no relative speed. Single\n"
             "steps and loops (bench --sustained) are in sections of their own.\n\n"
             "A file of another schema is refused. So is the file of a run that ended before it\n"
             "began, and one whose cells all have another input or another arithmetic than the\n"
             "files before it: the page says why, the other files are compared, and the exit\n"
             "code is 6. A table says what each device lacks, with the commands that measure it.",
    .examples = "  snapmla compare a.json b.json\n"
                "  snapmla compare H200/ MINE/ --prices prices.json --out comparison\n"
                "  snapmla compare results/nvidia-h200/2026-11-30-aebbce433e26-vendor MINE/",
    .options = options,
    .min_args = 2,
    .max_args = -1,
    .run = run,
};
