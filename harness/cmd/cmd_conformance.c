#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/term.h"
#include "base/text.h"
#include "harness/cmd/cmd.h"
#include "harness/record/results.h"
#include "harness/view/writers.h"
#include "kernels/conformance/conformance.h"

static const char *backend = "all", *isa = "auto";
static int64_t threads;

static const opt options[] = {
    {.type = OPT_GROUP, .help = "Device"},
    {OPT_STR, "backend", 0, &backend, "NAME",
     "all (that open here, the CPU with each of its instruction sets), a name that info lists, or "
     "plugin:PATH",
     0, 0},
    {OPT_INT, "threads", 0, &threads, "N", "cpu: threads, 0 = all cores", 0, 1024},
    {OPT_STR, "isa", 0, &isa, "NAME", "of one backend: as for bench", 0, 0},
    {.type = OPT_END},
};

/* ---- running --------------------------------------------------------------------------------- */

enum { kSubjects = TABLE_COLUMNS_MAX - 3 };

/* One backend's rows. */
typedef struct {
    mla_backend_info info;
    conformance_row *rows; /* [conformance_count()] */
    int n, failed, skipped;
    term_progress progress;
} subject;

typedef struct {
    subject subjects[kSubjects];
    int n;
} suite;

static void release(suite *s) {
    for (int i = 0; i < s->n; i++)
        free(s->subjects[i].rows);
}

static bool on_row(void *ctx, const conformance_row *row) {
    subject *s = ctx;
    s->rows[s->n++] = *row;
    s->failed += row->verdict == CONFORMANCE_FAILED;
    s->skipped += row->verdict == CONFORMANCE_SKIPPED;
    term_progress_update(&s->progress, s->n, row->check);
    return !cmd_cancelled;
}

static snap_status run_subject(suite *all, mla_backend *be, snap_err *err) {
    if (all->n == kSubjects)
        return err_set(err, SNAP_E_USAGE, "more than %d backends", kSubjects);
    subject *s = &all->subjects[all->n];
    s->rows = calloc((size_t)conformance_count(), sizeof *s->rows);
    if (!s->rows)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the rows");
    all->n++;
    mla_backend_describe(be, &s->info);
    s->progress = term_progress_start(s->info.kernel, conformance_count());
    snap_status st = conformance_run(be, on_row, s, err);
    term_progress_end(&s->progress);
    return st;
}

static snap_status run_named(suite *s, const char *name, const char *set, snap_err *err) {
    mla_backend_options wanted = {.isa = set, .threads = (int)threads};
    mla_backend *be = NULL;
    snap_status st = mla_backend_open(&be, name, &wanted, err);
    if (st == SNAP_OK)
        st = run_subject(s, be, err);
    mla_backend_close(be);
    return st;
}

/* What this machine lacks is no failure of what it has. */
static snap_status run_if_present(suite *s, const char *name, const char *set, snap_err *err) {
    mla_backend_options wanted = {.isa = set};
    mla_backend *be = NULL;
    snap_err absent = {0};
    snap_status st = mla_backend_open(&be, name, &wanted, &absent);
    mla_backend_close(be);
    return st == SNAP_OK ? run_named(s, name, set, err) : SNAP_OK;
}

static snap_status run_all(suite *s, snap_err *err) {
    static const char *const kIsas[] = {"avx512", "avx512f", "avx2", "portable", NULL};
    snap_status st = SNAP_OK;
    for (const char *const *set = kIsas; *set && st == SNAP_OK; set++)
        st = run_if_present(s, "cpu", *set, err);
    for (const char *const *name = mla_backend_list(); *name && st == SNAP_OK; name++)
        if (!text_equal(*name, "cpu"))
            st = run_if_present(s, *name, "auto", err);
    return st;
}

/* ---- showing --------------------------------------------------------------------------------- */

static void add_cell(table *t, const conformance_row *row) {
    if (row->verdict == CONFORMANCE_PASSED && !isnan(row->worst))
        table_cell(t, "%.1e%s", row->worst, row->exact ? "*" : "");
    else
        table_cell(t, "%s", conformance_verdict_name(row->verdict));
}

static snap_status show_table(const suite *s, buf *out, snap_err *err) {
    char heads_of[kSubjects][TABLE_CELL];
    const char *heads[TABLE_COLUMNS_MAX] = {"check", "arm", "bound"};
    for (int i = 0; i < s->n; i++) {
        const mla_backend_info *info = &s->subjects[i].info;
        (void)snprintf(heads_of[i], TABLE_CELL, "%s %s", info->name, info->kernel);
        heads[3 + i] = heads_of[i];
    }
    table t = table_new(heads, 3 + s->n);
    for (int r = 0; s->n && r < s->subjects[0].n; r++) {
        const conformance_row *row = &s->subjects[0].rows[r];
        table_cell(&t, "%s", row->check);
        table_cell(&t, "%s", row->arm);
        table_cell(&t, isnan(row->bound) ? "equal" : "%.1e", row->bound);
        for (int i = 0; i < s->n; i++)
            add_cell(&t, &s->subjects[i].rows[r]);
    }
    snap_status st = write_text(&t, term_use_color(STDOUT_FILENO), out, err);
    table_release(&t);
    return st;
}

/* The bounds of the table are those of the paper's arithmetic. */
static void show_own_rules(const suite *s, buf *out) {
    for (int i = 0; i < s->n; i++)
        for (int r = 0; r < s->subjects[i].n; r++)
            if (s->subjects[i].rows[r].exact) {
                (void)buf_printf(out,
                                 "* FP8 that rounds P by a rule of its own, not in a unit a page: "
                                 "against exact probabilities, bound of a row %.1e\n",
                                 s->subjects[i].rows[r].bound);
                return;
            }
}

/* Where lse is off by more than its bound, and why that is right. */
static void show_cut_sums(const suite *s, buf *out) {
    for (int i = 0; i < s->n; i++)
        for (int r = 0; r < s->subjects[i].n; r++) {
            const conformance_row *row = &s->subjects[i].rows[r];
            const mla_backend_info *info = &s->subjects[i].info;
            if (row->lse > row->lse_bound && row->lse_alike <= row->lse_bound)
                (void)buf_printf(
                    out,
                    "%s %s: %s, %s: lse is off by %.1e, bound %.1e; by %.1e from scores "
                    "summed in %d bits, as its tensor cores do\n",
                    info->name, info->kernel, row->check, row->arm, row->lse, row->lse_bound,
                    row->lse_alike, info->fp8_sums.bits);
        }
}

static void show_reasons(const suite *s, buf *out) {
    for (int i = 0; i < s->n; i++)
        for (int r = 0; r < s->subjects[i].n; r++) {
            const conformance_row *row = &s->subjects[i].rows[r];
            if (row->verdict != CONFORMANCE_PASSED)
                (void)buf_printf(out, "%s %s: %s, %s, %s: %s\n", s->subjects[i].info.name,
                                 s->subjects[i].info.kernel, conformance_verdict_name(row->verdict),
                                 row->check, row->arm, row->reason);
        }
}

static js *row_json(const conformance_row *row) {
    js *o = js_new_object();
    (void)js_set_str(o, "check", row->check);
    (void)js_set_str(o, "arm", row->arm);
    (void)js_set_str(o, "verdict", conformance_verdict_name(row->verdict));
    (void)js_set_int(o, "cases", row->cases);
    (void)js_set_int(o, "unsupported", row->unsupported);
    (void)js_set_new(o, "worst", js_new_num(row->worst));
    (void)js_set_new(o, "bound", js_new_num(row->bound));
    (void)js_set_bool(o, "exact_probabilities", row->exact);
    (void)js_set_new(o, "lse", js_new_num(row->lse));
    (void)js_set_new(o, "lse_alike", js_new_num(row->lse_alike));
    (void)js_set_new(o, "lse_bound", js_new_num(row->lse_bound));
    if (row->reason[0])
        (void)js_set_str(o, "reason", row->reason);
    return o;
}

static js *subject_json(const subject *s) {
    js *o = js_new_object(), *rows = js_new_array();
    for (int i = 0; i < s->n; i++)
        (void)js_push_new(rows, row_json(&s->rows[i]));
    (void)js_set_str(o, "name", s->info.name);
    (void)js_set_str(o, "device", s->info.device);
    (void)js_set_str(o, "kernel", s->info.kernel);
    (void)js_set_int(o, "failed", s->failed);
    (void)js_set_int(o, "skipped", s->skipped);
    (void)js_set_new(o, "checks", rows);
    return o;
}

static snap_status show_json(const suite *s, buf *out, snap_err *err) {
    js *doc = js_new_object(), *all = js_new_array();
    for (int i = 0; i < s->n; i++)
        (void)js_push_new(all, subject_json(&s->subjects[i]));
    (void)js_set_str(doc, "program", results_program_version());
    (void)js_set_str(doc, "commit", results_program_commit());
    (void)js_set_new(doc, "backends", all);
    snap_status st = js_write(doc, JS_ROWS, out, err);
    (void)buf_puts(out, "\n");
    js_free(doc);
    return st;
}

static snap_status verdict(const suite *s, snap_err *err) {
    int failed = 0;
    for (int i = 0; i < s->n; i++)
        failed += s->subjects[i].failed;
    return failed ? err_set(err, SNAP_E_WRONG, "%d check%s failed", failed, failed == 1 ? "" : "s")
                  : SNAP_OK;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    suite s = {0};
    buf out = {0};
    snap_status st = SNAP_OK;
    TRY(text_equal(backend, "all") ? run_all(&s, err) : run_named(&s, backend, isa, err));
    if (shared->json) {
        TRY(show_json(&s, &out, err));
    } else {
        TRY(show_table(&s, &out, err));
        show_own_rules(&s, &out);
        show_cut_sums(&s, &out);
        show_reasons(&s, &out);
    }
    TRY(buf_check(&out, "the table", err));
    (void)fputs(buf_str(&out), stdout);
    TRY(verdict(&s, err));
cleanup:
    release(&s);
    buf_release(&out);
    return st;
}

const opt_command cmd_conformance = {
    .name = "conformance",
    .summary = "whether a backend computes what it must, as a table",
    .synopsis = "[options]",
    .about =
        "Does a backend compute what kernels/mla.h promises? Both arms against the FP64 oracle of\n"
        "their own arithmetic, what must not change a bit (order of pages, unused slots, "
        "neighbours,\n"
        "reruns), steps whose answer is known, the dataflow against scalar code, bad arguments.\n"
        "A cell is the worst figure of a check, to be held against its bound; checks that ask for\n"
        "equality have none. Exit code 7 when a check fails.",
    .examples = "  snapmla conformance\n"
                "  snapmla conformance --backend plugin:./acme.so --json",
    .options = options,
    .run = run,
};
