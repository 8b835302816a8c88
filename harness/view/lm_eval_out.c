#include "harness/view/lm_eval_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/text.h"
#include "evals/sample_index.h"
#include "evals/task.h"
#include "harness/record/results.h"

typedef struct {
    results *run;
    sample_index samples;
    char date[32]; /* "2026-01-02T03-04-05Z" */
    const char *out;
    buf *written;
} exporter;

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for files of lm-eval");
}

/* The date is a part of names of files: a character that is none of a date becomes '-'. */
static void take_date(exporter *x) {
    const js *provenance = js_get_object(results_document(x->run), "provenance");
    const char *started = js_get_str(provenance, "started");
    (void)snprintf(x->date, sizeof x->date, "%.30s", started ? started : "unknown");
    for (char *c = x->date; *c; c++)
        if (!strchr("0123456789TZ", *c))
            *c = '-';
}

/* Names in a run's files become names of files. */
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
    char *gold, *prompt, *prompt_sha256;
    double correct;
    size_t n;
} document;

static void document_release(document *d) {
    js_free(d->resps);
    js_free(d->filtered);
    free(d->gold);
    free(d->prompt);
    free(d->prompt_sha256);
    *d = (document){0};
}

static snap_status add_sample(exporter *x, const sample_row *row, document *d, snap_err *err) {
    snap_status st = SNAP_OK;
    js *full = row->failed ? NULL : sample_index_read(&x->samples, row, err);
    if (row->failed)
        return SNAP_OK;
    if (!full)
        return err ? err->code : SNAP_E_INPUT;
    const char *text = js_get_str(full, "response"), *extracted = js_get_str(full, "extracted");
    const char *gold = js_get_str(full, "gold"), *prompt = js_get_str(full, "prompt");
    const char *sha256 = js_get_str(full, "prompt_sha256");
    d->resps = d->resps ? d->resps : js_new_array();
    d->filtered = d->filtered ? d->filtered : js_new_array();
    d->gold = d->gold ? d->gold : strdup(gold ? gold : "");
    d->prompt = d->prompt ? d->prompt : strdup(prompt ? prompt : "");
    d->prompt_sha256 = d->prompt_sha256 ? d->prompt_sha256 : strdup(sha256 ? sha256 : "");
    if (!d->gold || !d->prompt || !d->prompt_sha256 ||
        !js_push_new(d->resps, js_new_str(text ? text : "")) ||
        !js_push_new(d->filtered, js_new_str(extracted ? extracted : "[invalid]")))
        st = no_memory(err);
    d->id = row->problem;
    d->correct += text_equal(row->verdict, "correct");
    d->n++;
    js_free(full);
    return st;
}

static bool set_hash(js *row, const char *key, const char *text) {
    char digest[HASH_HEX];
    return hash_bytes(text, strlen(text), digest, NULL) == SNAP_OK && js_set_str(row, key, digest);
}

/* {"gen_args_0": {"arg_0": PROMPT}}. PROMPT is "" if the run does not keep prompts. */
static js *arguments_of(const document *d) {
    js *all = js_new_object(), *args = js_new_object();
    bool ok = all && args && js_set_str(args, "arg_0", d->prompt);
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

static bool add_task(js *doc, const js *eval, const js *arm) {
    const char *task = js_get_str(eval, "task");
    double accuracy = js_get_num(arm, "accuracy_pct", -1), se = js_get_num(arm, "se_pct", -1);
    js *scores = js_new_object(), *config = js_new_object(), *n = js_new_object();
    js *higher = js_new_object();
    bool ok =
        scores && config && n && higher && js_set_str(scores, "alias", task) &&
        js_set_new(scores, "acc,none", accuracy < 0 ? js_new_null() : js_new_num(accuracy / 100)) &&
        js_set_new(scores, "acc_stderr,none", se < 0 ? js_new_null() : js_new_num(se / 100)) &&
        js_set_str(config, "task", task) &&
        js_set_int(config, "repeats", js_get_int(eval, "samples_per_problem", 1)) &&
        js_set_str(config, "grader", js_get_str(eval, "grader")) &&
        js_set_int(n, "original", js_get_int(js_get_object(eval, "dataset"), "rows", 0)) &&
        js_set_int(n, "effective", js_get_int(eval, "problems", 0)) &&
        js_set_bool(higher, "acc", true);
    ok = set_of_task(doc, "results", task, scores) && ok;
    ok = set_of_task(doc, "configs", task, config) && ok;
    ok = set_of_task(doc, "n-samples", task, n) && ok;
    ok = set_of_task(doc, "higher_is_better", task, higher) && ok;
    return ok && set_of_task(doc, "versions", task, js_new_str(js_get_str(eval, "grader")));
}

static bool set_model(js *doc, const char *arm, const char *model) {
    js *config = js_new_object();
    bool ok =
        config && js_set_str(config, "model", "snapmla") && js_set_str(config, "model_args", model);
    ok = js_set_new(doc, "config", config) && ok;
    return ok && js_set_str(doc, "model_source", "snapmla") &&
           js_set_str(doc, "model_name", model ? model : arm) &&
           js_set_str(doc, "model_name_sanitized", arm) &&
           js_set_new(doc, "group_subtasks", js_new_object()) &&
           js_set_new(doc, "n-shot", js_new_object());
}

static snap_status write_results(exporter *x, const char *name, snap_err *err) {
    const js *evals = results_section(x->run, "evals");
    const char *model = NULL;
    js *doc = js_new_object();
    buf text = {0};
    bool ok = doc != NULL;
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < js_len(evals) && ok; i++) {
        const js *eval = js_at(evals, i), *arm = arm_named(eval, name);
        const char *task = js_get_str(eval, "task");
        if (!arm || !task || strchr(task, ':')) /* a further metric of a task */
            continue;
        model = js_get_str(arm, "model");
        ok = add_task(doc, eval, arm);
    }
    if (!ok || !set_model(doc, name, model))
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

/* ---- the run ---- */

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

snap_status lm_eval_write(const char *run, const char *out, buf *written, snap_err *err) {
    exporter x = {.out = out, .written = written, .samples = {.fd = -1}};
    char *result = fs_join(run, "run.json"), *samples = fs_join(run, "samples.jsonl");
    snap_status st;
    if (!result || !samples)
        TRY(no_memory(err));
    TRY(results_load(&x.run, result, err));
    take_date(&x);
    TRY(sample_index_open(&x.samples, samples, err));
    TRY(write_all(&x, err));
cleanup:
    sample_index_close(&x.samples);
    results_free(x.run);
    free(result);
    free(samples);
    return st;
}
