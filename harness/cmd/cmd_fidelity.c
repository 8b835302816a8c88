#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/term.h"
#include "harness/bench/fidelity.h"
#include "harness/bench/model_fidelity.h"
#include "harness/cmd/device.h"

static device_options device = DEVICE_DEFAULTS;
static const char *configs = "bf16,snapmla,A,B,C,D,E,F,noPV";
static const char *distributions = "normal,mla";
static const char *contexts = "1024,4096,32768";
static int64_t heads = 16, seed = 1;
static const char *out;
static const char *model_dir, *text_path, *precisions = "bf16,fp8,A";
static int64_t max_tokens;
static bool prefill;

static const opt options[] = {
    {.type = OPT_GROUP, .help = "What"},
    {OPT_STR, "configs", 0, &configs, "LIST",
     "cache formats: bf16, snapmla, the ablation's A to F, noPV (snapmla with P in bf16)", 0, 0},
    {OPT_STR, "contexts", 0, &contexts, "LIST", "tokens in the cache", 0, 0},
    {OPT_STR, "distribution", 0, &distributions, "LIST",
     "normal: N(0,1); mla: RoPE columns with outliers up to 1e3", 0, 0},
    {OPT_INT, "heads", 0, &heads, "N", "query heads, each a compared row", 1, MLA_MAX_HEADS},
    {OPT_INT, "seed", 0, &seed, "N", "of the random numbers", 0, 1e15},
    {.type = OPT_GROUP, .help = "Of a model's predictions"},
    {OPT_STR, "model", 'm', &model_dir, "DIR",
     "a checkpoint: perplexity, KL divergence and changed tokens on --text, on the CPU", 0, 0},
    {OPT_STR, "text", 0, &text_path, "FILE", "- = standard input", 0, 0},
    {OPT_STR, "precisions", 0, &precisions, "LIST",
     "of the cache: bf16, fp8, fp32, A to F, noPV; the first is the reference", 0, 0},
    {OPT_INT, "max-tokens", 0, &max_tokens, "N", "of the text; 0 = up to 32768", 0,
     MLA_MAX_CONTEXT},
    {OPT_FLAG, "prefill", 0, &prefill, NULL, "the text as a prompt, in place of decoding it", 0, 0},
    DEVICE_OPTIONS(device),
    {.type = OPT_GROUP, .help = "Output"},
    {OPT_STR, "out", 'o', &out, "PATH", "write the result file: a .json file or a run's folder", 0,
     0},
    {.type = OPT_END},
};

static const opt_command spec = {
    .name = "fidelity",
    .synopsis = "[options]",
    .about =
        "Numerical error of attention in each cache format against FP64 attention over the\n"
        "unquantised numbers: from the FP64 oracle of each format's arithmetic (what the format\n"
        "costs), and from the arms of the backend (what this implementation adds). With --model: "
        "what\n"
        "the formats do to a model's predictions of a text.",
    .examples = "  snapmla fidelity\n"
                "  snapmla fidelity --model DIR --text book.txt --max-tokens 8192\n"
                "  snapmla fidelity --configs snapmla,A,noPV --contexts 1024,131072 --out RUN",
    .options = options,
};

typedef struct {
    results *r;
    table *t;
    term_progress progress;
    int64_t done;
} sink;

static void add_row(table *t, const js *row) {
    static const char *const figures[] = {"rmse", "rel_l2", "cosine_diff", "lse_error", "max_abs"};
    table_cell(t, "%s", js_get_str(row, "distribution"));
    table_cell(t, "%lld", (long long)js_get_int(row, "context", 0));
    table_cell(t, "%s", js_get_str(row, "config"));
    table_cell(t, "%s", js_get_str(row, "source"));
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        double x = js_get_num(row, figures[i], (double)NAN);
        if (isnan(x))
            table_cell(t, "-");
        else
            table_cell(t, "%.2e", x);
    }
}

static snap_status take_row(void *ctx, js *row, snap_err *err) {
    sink *s = ctx;
    add_row(s->t, row);
    term_progress_update(&s->progress, ++s->done, js_get_str(row, "config"));
    return results_add(s->r, "fidelity", row, err);
}

/* ---- a model's predictions ---------------------------------------------------------------------- */

static void show_progress(void *ctx, int64_t done, int64_t all) {
    (void)all;
    term_progress_update(ctx, done, "tokens");
}

static void sums_row(table *t, const char *format, const char *where,
                     const model_fidelity_sums *s) {
    double n = (double)s->tokens;
    table_cell(t, "%s", format);
    table_cell(t, "%s", where);
    table_cell(t, "%lld", (long long)s->tokens);
    table_cell(t, "%.4f", exp(s->nll / n));
    table_cell(t, "%.2e", s->kl / n);
    table_cell(t, "%.2e", s->kl_max);
    table_cell(t, "%.2f", 100 * (double)s->flips / n);
}

static void model_rows(table *t, const model_fidelity_row *r) {
    char where[64];
    int64_t from = 0, end = MODEL_FIDELITY_FIRST;
    sums_row(t, r->format, "all", &r->all);
    for (int i = 0; i < MODEL_FIDELITY_RANGES; i++, from = end, end *= 2) {
        (void)snprintf(where, sizeof where, "%lld..%lld", (long long)from, (long long)end - 1);
        if (r->range[i].tokens)
            sums_row(t, r->format, where, &r->range[i]);
    }
}

static bool sums_json(js *o, const model_fidelity_sums *s) {
    double n = (double)s->tokens;
    return js_set_int(o, "tokens", s->tokens) && js_set_num(o, "perplexity", exp(s->nll / n)) &&
           js_set_num(o, "kl_mean", s->kl / n) && js_set_num(o, "kl_max", s->kl_max) &&
           js_set_num(o, "flips_pct", 100 * (double)s->flips / n);
}

static js *model_json(const model_fidelity_row *r) {
    js *o = js_new_object(), *list = js_new_array();
    bool ok = o && list && js_set_str(o, "precision", r->format) &&
              js_set_int(o, "cache_bytes_a_token", r->cache_bytes) && sums_json(o, &r->all);
    int64_t from = 0, end = MODEL_FIDELITY_FIRST;
    for (int i = 0; i < MODEL_FIDELITY_RANGES && ok; i++, from = end, end *= 2) {
        js *range = r->range[i].tokens ? js_new_object() : NULL;
        if (range)
            ok = js_set_int(range, "first", from) && sums_json(range, &r->range[i]) &&
                 js_push_new(list, range);
    }
    ok = js_set_new(o, "by_position", list) && ok;
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

static snap_status print_model(const model_fidelity_row *rows, int n, bool json, snap_err *err) {
    static const char *const columns[] = {"precision", "positions", "tokens", "perplexity",
                                          "KL mean",   "KL max",    "flips %"};
    snap_status st = SNAP_OK;
    table t = {.heads = columns, .columns = 7};
    buf text = {0};
    js *list = js_new_array();
    for (int i = 0; i < n; i++) {
        model_rows(&t, &rows[i]);
        if (!js_push_new(list, model_json(&rows[i]))) {
            st = err_set(err, SNAP_E_NOMEM, "out of memory for the result");
            goto cleanup;
        }
    }
    TRY(json ? js_write(list, JS_PRETTY, &text, err)
             : table_write(&t, term_use_color(STDOUT_FILENO), &text, err));
    (void)fputs(buf_str(&text), stdout);
    if (json)
        (void)puts("");
cleanup:
    js_free(list);
    table_release(&t);
    buf_release(&text);
    return st;
}

static snap_status run_model(const opt_shared *shared, snap_err *err) {
    model_fidelity_row rows[MODEL_FIDELITY_FORMATS];
    int n = 0;
    snap_status st;
    buf text = {0};
    term_progress progress = term_progress_start("fidelity", 0);
    model_fidelity_options what = {.dir = model_dir,
                                   .formats = precisions,
                                   .max_tokens = max_tokens,
                                   .chunks = prefill,
                                   .threads = (int)device.threads,
                                   .cancel = &cmd_cancelled,
                                   .progress = show_progress,
                                   .ctx = &progress};
    if (!text_path)
        return err_set(err, SNAP_E_USAGE, "--model needs a text: give --text FILE");
    TRY(fs_read(text_path, &text, err));
    what.text = buf_str(&text);
    st = model_fidelity_run(&what, rows, &n, err);
    term_progress_end(&progress);
    TRY(st);
    TRY(print_model(rows, n, shared->json, err));
cleanup:
    buf_release(&text);
    return st;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    if (model_dir)
        return run_model(shared, err);
    static const char *const columns[] = {"distribution", "context",   "config",
                                          "source",       "RMSE",      "rel. L2",
                                          "1-cosine",     "LSE error", "max. abs."};
    mla_backend *be = NULL;
    results *r = NULL;
    table t = {.heads = columns, .columns = 9};
    fidelity_options what = {.heads = (int)heads,
                             .d_c = 512,
                             .d_r = 64,
                             .seed = (uint64_t)seed,
                             .threads = (int)device.threads,
                             .cancel = &cmd_cancelled};
    snap_status st = SNAP_OK;
    TRY(fidelity_parse(&what, configs, distributions, contexts, err));
    TRY(device_open(&be, &device, err));
    what.backend = be;
    TRY(device_results(&r, be, &device, "fidelity", shared, seed, err));
    sink s = {.r = r, .t = &t, .progress = term_progress_start("fidelity", fidelity_count(&what))};
    st = fidelity_run(&what, take_row, &s, err);
    term_progress_end(&s.progress);
    TRY(st);
    TRY(device_finish(r, out, shared, &t, err));
cleanup:
    table_release(&t);
    results_free(r);
    mla_backend_close(be);
    return st;
}

const cmd cmd_fidelity = {&spec, run, "numerical error of each cache format against FP64"};
