#include "harness/view/lm_eval_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/term.h"
#include "base/text.h"
#include "evals/sample_index.h"
#include "evals/task.h"
#include "harness/eval/run_prompts.h"
#include "harness/record/results.h"

typedef struct {
    results *run;
    sample_index samples;
    run_prompts *prompts; /* NULL: the data are not there */
    size_t n_prompts, empty_prompts;
    char date[32];           /* "2026-01-02T03-04-05.000000" */
    double started, seconds; /* Unix time of the start, and how long the run took */
    const char *out;
    buf *written;
} exporter;

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for files of lm-eval");
}

/* Unix time of "2026-01-02T03:04:05Z"; 0 for another text. */
static double unix_time(const char *text) {
    struct tm t = {0};
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%SZ", &t) : NULL;
    return end && !*end ? (double)timegm(&t) : 0;
}

/* The date is a part of names of files. lm-eval writes it as Python's isoformat() does, with '-' in
 * place of ':'. */
static void take_date(exporter *x) {
    const js *provenance = js_get_object(results_document(x->run), "provenance");
    const char *started = js_get_str(provenance, "started");
    x->started = unix_time(started);
    x->seconds = unix_time(js_get_str(provenance, "ended")) - x->started;
    (void)snprintf(x->date, sizeof x->date, "%.19s.000000",
                   started ? started : "1970-01-01T00:00:00");
    for (char *c = x->date; *c; c++)
        if (!strchr("0123456789T.", *c))
            *c = '-';
}

/* Refuses a name from samples.jsonl that is not a safe file name: the export names files by it. */
static snap_status check_name(const char *name, snap_err *err) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    size_t n = strlen(name);
    if (n && n <= 80 && name[0] != '.' && strspn(name, allowed) == n)
        return SNAP_OK;
    return err_set(err, SNAP_E_INPUT, "'%.80s' in samples.jsonl cannot be the name of a file",
                   name);
}

/* Writes OUT/ARM/PREFIX_DATE.SUFFIX. */
static snap_status write_file(exporter *x, const char *arm, const char *prefix, const char *suffix,
                              const buf *text, snap_err *err) {
    buf path = {0};
    snap_status st;
    (void)buf_printf(&path, "%s/%s", x->out, arm);
    TRY(buf_check(&path, "a path", err));
    TRY(fs_mkdirs(buf_str(&path), err));
    (void)buf_printf(&path, "/%s_%s.%s", prefix, x->date, suffix);
    TRY(buf_check(&path, "a path", err));
    TRY(fs_write_atomic(buf_str(&path), buf_str(text), text->len, err));
    (void)buf_printf(x->written, "%s\n", buf_str(&path));
cleanup:
    buf_release(&path);
    return st;
}

/* ---- samples ---- */

/* One problem of one arm. */
typedef struct {
    const char *id;
    js *resps, *filtered; /* answers, and what was extracted from them */
    js *parameters;       /* sampling parameters of the request */
    char *gold, *prompt, *prompt_sha256;
    double correct;
    size_t n;
} document;

static void document_release(document *d) {
    js_free(d->resps);
    js_free(d->filtered);
    js_free(d->parameters);
    free(d->gold);
    free(d->prompt);
    free(d->prompt_sha256);
    *d = (document){0};
}

/* The sampling of a run or a sample under the names that lm-eval gives its parts. NULL if memory is
 * exhausted. */
static js *parameters_of(const js *sampling) {
    const double temperature = js_get_num(sampling, "temperature", 0);
    js *o = js_new_object();
    if (o && js_set_new(o, "until", js_new_array()) &&
        js_set_bool(o, "do_sample", temperature > 0) && js_set_num(o, "temperature", temperature) &&
        js_set_num(o, "top_p", js_get_num(sampling, "top_p", 1)) &&
        js_set_int(o, "max_gen_toks", js_get_int(sampling, "max_tokens", 0)))
        return o;
    js_free(o);
    return NULL;
}

/* Sets d->prompt: that of the sample, or else the one that the data give. */
static snap_status take_prompt(exporter *x, const sample_row *row, const js *full, document *d,
                               snap_err *err) {
    const char *kept = js_get_str(full, "prompt");
    buf text = {0};
    snap_status st;
    if (kept)
        (void)buf_puts(&text, kept);
    else
        TRY(run_prompts_text(x->prompts, x->samples.tasks[row->task], row->problem,
                             d->prompt_sha256, &text, err));
    x->n_prompts++;
    x->empty_prompts += !text.len;
    d->prompt = strdup(buf_str(&text));
    st = d->prompt ? buf_check(&text, "a prompt", err) : no_memory(err);
cleanup:
    buf_release(&text);
    return st;
}

/* Sets what all samples of a problem have in common. */
static snap_status begin_document(exporter *x, const sample_row *row, const js *full, document *d,
                                  snap_err *err) {
    const char *gold = js_get_str(full, "gold"), *sha256 = js_get_str(full, "prompt_sha256");
    *d = (document){.id = row->problem,
                    .resps = js_new_array(),
                    .filtered = js_new_array(),
                    .parameters = parameters_of(js_get_object(full, "sampling")),
                    .gold = strdup(gold ? gold : ""),
                    .prompt_sha256 = strdup(sha256 ? sha256 : "")};
    return d->resps && d->filtered && d->parameters && d->gold && d->prompt_sha256
               ? take_prompt(x, row, full, d, err)
               : no_memory(err);
}

static snap_status add_sample(exporter *x, const sample_row *row, document *d, snap_err *err) {
    snap_status st = SNAP_OK;
    js *full = row->failed ? NULL : sample_index_read(&x->samples, row, err);
    if (row->failed)
        return SNAP_OK;
    if (!full)
        return err ? err->code : SNAP_E_INPUT;
    const char *text = js_get_str(full, "response"), *extracted = js_get_str(full, "extracted");
    if (!d->n)
        TRY(begin_document(x, row, full, d, err));
    if (!js_push_new(d->resps, js_new_str(text ? text : "")) ||
        !js_push_new(d->filtered, js_new_str(extracted ? extracted : "[invalid]")))
        TRY(no_memory(err));
    d->correct += text_equal(row->verdict, "correct");
    d->n++;
cleanup:
    js_free(full);
    return st;
}

static bool set_hash(js *row, const char *key, const char *text) {
    char digest[HASH_HEX];
    return hash_bytes(text, strlen(text), digest, NULL) == SNAP_OK && js_set_str(row, key, digest);
}

/* {"gen_args_0": {"arg_0": PROMPT, "arg_1": PARAMETERS}} */
static js *arguments_of(document *d) {
    js *all = js_new_object(), *args = js_new_object(), *parameters = d->parameters;
    d->parameters = NULL;
    bool ok = js_set_new(args, "arg_1", parameters) && all && js_set_str(args, "arg_0", d->prompt);
    ok = js_set_new(all, "gen_args_0", args) && ok;
    if (ok)
        return all;
    js_free(all);
    return NULL;
}

/* Appends the line of a problem, which must have a sample, and releases the document. */
static snap_status add_document(document *d, int64_t number, buf *text, snap_err *err) {
    js *row = js_new_object(), *doc = js_new_object(), *resps = js_new_array();
    js *metrics = js_new_array();
    bool ok = row && doc && resps && metrics && js_set_str(doc, "id", d->id);
    ok = js_push_new(resps, d->resps) && ok;
    ok = js_push_new(metrics, js_new_str("acc")) && ok;
    ok = js_set_new(row, "doc", doc) && ok;
    ok = js_set_new(row, "resps", resps) && ok;
    ok = js_set_new(row, "metrics", metrics) && ok;
    ok = js_set_new(row, "filtered_resps", d->filtered) && ok;
    d->resps = d->filtered = NULL;
    ok = ok && js_set_int(row, "doc_id", number) && js_set_str(row, "target", d->gold) &&
         js_set_new(row, "arguments", arguments_of(d)) && js_set_str(row, "filter", "none") &&
         set_hash(row, "doc_hash", d->id) && js_set_str(row, "prompt_hash", d->prompt_sha256) &&
         set_hash(row, "target_hash", d->gold) && js_set_num(row, "acc", d->correct / (double)d->n);
    snap_status st = ok ? js_write(row, JS_COMPACT, text, err) : no_memory(err);
    (void)buf_puts(text, "\n");
    js_free(row);
    document_release(d);
    return st;
}

static const sample_row *row_of(const sample_question *q, int arm) {
    for (size_t i = 0; i < q->n; i++)
        if (q->rows[i].arm == arm)
            return &q->rows[i];
    return NULL;
}

static snap_status write_samples_of(exporter *x, int task, int arm, snap_err *err) {
    const sample_index *all = &x->samples;
    const char *problem = NULL;
    char prefix[100];
    int64_t number = -1;
    buf text = {0};
    document d = {0};
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < all->n_questions; i++) {
        const sample_question *q = &all->questions[i];
        if (q->rows[0].task != task)
            continue;
        if (!text_equal(problem, q->rows[0].problem)) {
            if (d.n)
                TRY(add_document(&d, number, &text, err));
            problem = q->rows[0].problem;
            number++;
        }
        const sample_row *row = row_of(q, arm);
        if (row)
            TRY(add_sample(x, row, &d, err));
    }
    if (d.n)
        TRY(add_document(&d, number, &text, err));
    (void)snprintf(prefix, sizeof prefix, "samples_%.80s", all->tasks[task]);
    if (text.len)
        TRY(write_file(x, all->arms[arm], prefix, "jsonl", &text, err));
cleanup:
    document_release(&d);
    buf_release(&text);
    return st;
}

/* ---- results ---- */

static const js *arm_named(const js *eval, const char *name) {
    const js *arms = js_get_array(eval, "arms");
    for (size_t i = 0; i < js_len(arms); i++)
        if (text_equal(js_get_str(js_at(arms, i), "name"), name))
            return js_at(arms, i);
    return NULL;
}

/* Adds {KEY: {TASK: value}}. Takes ownership of the value. */
static bool set_of_task(js *doc, const char *key, const char *task, js *value) {
    if (!js_get_object(doc, key) && !js_set_new(doc, key, js_new_object())) {
        js_free(value);
        return false;
    }
    return js_set_new(js_get_object(doc, key), task, value);
}

/* {"metric": "acc", "aggregation": "mean", "higher_is_better": true}, as a list */
static js *metric_list(void) {
    js *list = js_new_array(), *acc = js_new_object();
    bool ok = list && acc && js_set_str(acc, "metric", "acc") &&
              js_set_str(acc, "aggregation", "mean") && js_set_bool(acc, "higher_is_better", true);
    ok = js_push_new(list, acc) && ok;
    if (ok)
        return list;
    js_free(list);
    return NULL;
}

static js *scores_of(const js *eval, const js *arm) {
    const double accuracy = js_get_num(arm, "accuracy_pct", -1), se = js_get_num(arm, "se_pct", -1);
    js *o = js_new_object();
    const char *task = js_get_str(eval, "task");
    if (o && js_set_str(o, "name", task) && js_set_str(o, "alias", task) &&
        js_set_int(o, "sample_len", js_get_int(eval, "problems", 0)) &&
        js_set_new(o, "acc,none", accuracy < 0 ? js_new_null() : js_new_num(accuracy / 100)) &&
        /* lm-eval writes "N/A" if there is no standard error */
        js_set_new(o, "acc_stderr,none", se < 0 ? js_new_str("N/A") : js_new_num(se / 100)))
        return o;
    js_free(o);
    return NULL;
}

static js *task_config(const js *eval) {
    js *o = js_new_object();
    if (o && js_set_str(o, "task", js_get_str(eval, "task")) &&
        js_set_str(o, "output_type", "generate_until") &&
        js_set_new(o, "metric_list", metric_list()) &&
        js_set_new(o, "generation_kwargs", parameters_of(js_get_object(eval, "sampling"))) &&
        js_set_int(o, "repeats", js_get_int(eval, "samples_per_problem", 1)) &&
        js_set_str(o, "grader", js_get_str(eval, "grader")))
        return o;
    js_free(o);
    return NULL;
}

static bool add_task(js *doc, const js *eval, const js *arm) {
    const char *task = js_get_str(eval, "task");
    js *n = js_new_object(), *higher = js_new_object();
    bool ok = n && higher &&
              js_set_int(n, "original", js_get_int(js_get_object(eval, "dataset"), "rows", 0)) &&
              js_set_int(n, "effective", js_get_int(eval, "problems", 0)) &&
              js_set_bool(higher, "acc", true);
    ok = set_of_task(doc, "results", task, scores_of(eval, arm)) && ok;
    ok = set_of_task(doc, "configs", task, task_config(eval)) && ok;
    ok = set_of_task(doc, "n-samples", task, n) && ok;
    ok = set_of_task(doc, "higher_is_better", task, higher) && ok;
    ok = set_of_task(doc, "group_subtasks", task, js_new_array()) && ok;
    return ok && set_of_task(doc, "versions", task, js_new_str(js_get_str(eval, "grader")));
}

/* What lm-eval writes about a model and its own call. @arm: NULL if no task has the arm. */
static js *run_config(const exporter *x, const char *model, const js *arm) {
    const js *provenance = js_get_object(results_document(x->run), "provenance");
    const js *options = js_get_object(provenance, "config");
    const char *precision = js_get_str(arm, "precision");
    const int64_t limit = js_get_int(options, "limit", 0), seed = js_get_int(provenance, "seed", 0);
    js *o = js_new_object();
    buf args = {0};
    (void)buf_printf(&args, "model=%s", model);
    if (precision)
        (void)buf_printf(&args, ",precision=%s", precision);
    bool ok = o && !args.failed && js_set_str(o, "model", "snapmla") &&
              js_set_str(o, "model_args", buf_str(&args)) &&
              js_set_new(o, "batch_size", js_new_null()) &&
              js_set_new(o, "batch_sizes", js_new_array()) &&
              js_set_str(o, "device", js_get_str(arm, "device")) &&
              js_set_new(o, "use_cache", js_new_null()) &&
              js_set_new(o, "limit", limit ? js_new_int(limit) : js_new_null()) &&
              js_set_int(o, "bootstrap_iters", 0) && js_set_new(o, "gen_kwargs", js_new_null()) &&
              js_set_int(o, "random_seed", seed) && js_set_int(o, "fewshot_seed", seed);
    buf_release(&args);
    if (ok)
        return o;
    js_free(o);
    return NULL;
}

static bool set_run(const exporter *x, js *doc, const char *name, const js *arm) {
    const char *known = js_get_str(arm, "model"), *model = known && *known ? known : name;
    const js *provenance = js_get_object(results_document(x->run), "provenance");
    char seconds[32];
    (void)snprintf(seconds, sizeof seconds, "%.1f", x->seconds);
    return js_set_new(doc, "config", run_config(x, model, arm)) &&
           js_set_str(doc, "model_source", "snapmla") && js_set_str(doc, "model_name", model) &&
           js_set_str(doc, "model_name_sanitized", name) &&
           js_set_new(doc, "n-shot", js_new_object()) && js_set_num(doc, "date", x->started) &&
           js_set_str(doc, "git_hash",
                      js_get_str(js_get_object(provenance, "program"), "commit")) &&
           js_set_str(doc, "total_evaluation_time_seconds", seconds);
}

static snap_status write_results(exporter *x, const char *name, snap_err *err) {
    const js *evals = results_section(x->run, "evals");
    const js *last = NULL;
    js *doc = js_new_object();
    buf text = {0};
    bool ok = doc != NULL;
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < js_len(evals) && ok; i++) {
        const js *eval = js_at(evals, i), *arm = arm_named(eval, name);
        const char *task = js_get_str(eval, "task");
        if (!arm || !task || strchr(task, ':')) /* a further metric of a task */
            continue;
        last = arm;
        ok = add_task(doc, eval, arm);
    }
    if (!ok || !set_run(x, doc, name, last))
        TRY(no_memory(err));
    TRY(js_write(doc, JS_PRETTY, &text, err));
    (void)buf_puts(&text, "\n");
    TRY(buf_check(&text, "results", err));
    TRY(write_file(x, name, "results", "json", &text, err));
cleanup:
    js_free(doc);
    buf_release(&text);
    return st;
}

/* ---- exporting a run ---- */

static snap_status write_all(exporter *x, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int arm = 0; arm < x->samples.n_arms; arm++)
        TRY(check_name(x->samples.arms[arm], err));
    for (int task = 0; task < x->samples.n_tasks; task++)
        TRY(check_name(x->samples.tasks[task], err));
    for (int arm = 0; arm < x->samples.n_arms; arm++) {
        TRY(write_results(x, x->samples.arms[arm], err));
        for (int task = 0; task < x->samples.n_tasks; task++)
            if (!task_is_confidential(x->samples.tasks[task]))
                TRY(write_samples_of(x, task, arm, err));
    }
cleanup:
    return st;
}

/* Opens what the prompts are made from. Without it they are empty. */
static snap_status open_prompts(exporter *x, const char *run, const char *data, snap_err *err) {
    snap_err why = {0};
    snap_status st = run_prompts_open(&x->prompts, run, x->run, data, &why);
    if (st == SNAP_E_NOMEM || (st != SNAP_OK && data))
        return err_set(err, st, "%s", why.text);
    if (st != SNAP_OK)
        term_warn("prompts cannot be made again: %s", why.text);
    return SNAP_OK;
}

snap_status lm_eval_write(const char *run, const char *data, const char *out, buf *written,
                          snap_err *err) {
    exporter x = {.out = out, .written = written, .samples = {.fd = -1}};
    char *result = fs_join(run, "run.json"), *samples = fs_join(run, "samples.jsonl");
    snap_status st;
    if (!result || !samples)
        TRY(no_memory(err));
    TRY(results_load(&x.run, result, err));
    take_date(&x);
    TRY(sample_index_open(&x.samples, samples, err));
    TRY(open_prompts(&x, run, data, err));
    TRY(write_all(&x, err));
    if (x.prompts && x.empty_prompts)
        term_warn("%zu of %zu prompts are empty: the data that --data or the run name do not give "
                  "them",
                  x.empty_prompts, x.n_prompts);
cleanup:
    run_prompts_close(x.prompts);
    sample_index_close(&x.samples);
    results_free(x.run);
    free(result);
    free(samples);
    return st;
}
