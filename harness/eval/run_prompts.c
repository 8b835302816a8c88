#include "harness/eval/run_prompts.h"

#include <stdlib.h>

#include "base/fs.h"
#include "base/share.h"
#include "base/text.h"
#include "harness/eval/run_files.h"
#include "harness/eval/suite.h"

struct run_prompts {
    arena mem;
    task_set *sets; /* [n] */
    size_t n;
};

/* The options of task_load() that the configuration of a run states. */
static snap_status read_options(const js *config, task_options *out, snap_err *err) {
    *out = (task_options){.lengths = js_get_str(config, "lengths"),
                          .tokenizer = js_get_str(config, "tokenizer"),
                          .chars_per_token = js_get_num(config, "chars-per-token", 0),
                          .seed = (uint64_t)js_get_int(config, "seed", 0),
                          .lcb_version = js_get_str(config, "lcb-version"),
                          .lcb_from = js_get_str(config, "lcb-from"),
                          .lcb_to = js_get_str(config, "lcb-to")};
    snap_status st = task_policy_parse(js_get_str(config, "math-policy"), &out->policy, err);
    return st == SNAP_OK ? judge_kind_parse(js_get_str(config, "judge"), &out->judge, err) : st;
}

static snap_status load_sets(run_prompts *p, const js *config, const char *data, snap_err *err) {
    const char *names = js_get_str(config, "suite");
    char *shared = NULL;
    task_options options;
    suite s;
    snap_status st;
    if (!names)
        TRY(err_set(err, SNAP_E_USAGE, "the run does not name its tasks"));
    data = data ? data : js_get_str(config, "data");
    if (!data)
        data = shared = share_find("datasets");
    if (!data)
        TRY(err_set(err, SNAP_E_USAGE, "no data folder: give --data DIR"));
    TRY(read_options(config, &options, err));
    TRY(suite_resolve(names, &p->mem, &s, err));
    p->sets = calloc(s.n ? s.n : 1, sizeof *p->sets);
    if (!p->sets)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for the prompts"));
    const size_t limit = (size_t)js_get_int(config, "limit", 0);
    for (size_t i = 0; i < s.n; i++) {
        p->n++; /* a set is released also after a failure */
        TRY(task_load(s.tasks[i].task, data, limit, &options, &p->sets[i], err));
    }
cleanup:
    free(shared);
    return st;
}

/* Loads the problems that the journal of the run names, or else its result. */
static snap_status load(run_prompts *p, const char *journal_path, const results *run,
                        const char *data, snap_err *err) {
    const js *provenance = js_get_object(results_document(run), "provenance");
    const js *config = js_get_object(provenance, "config"), *kept = NULL;
    results_journal *journal = NULL;
    snap_status st;
    if (fs_exists(journal_path)) {
        TRY(results_journal_read(&journal, journal_path, err));
        kept = results_journal_find(journal, RUN_CONFIG);
    }
    TRY(load_sets(p, kept ? kept : config, data, err));
cleanup:
    results_journal_close(journal);
    return st;
}

snap_status run_prompts_open(run_prompts **out, const char *folder, const results *run,
                             const char *data, snap_err *err) {
    char *path = fs_join(folder, "journal");
    run_prompts *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!p || !path) {
        free(p);
        free(path);
        return err_set(err, SNAP_E_NOMEM, "out of memory for the prompts");
    }
    snap_status st = load(p, path, run, data, err);
    free(path);
    if (st == SNAP_OK)
        *out = p;
    else
        run_prompts_close(p);
    return st;
}

void run_prompts_close(run_prompts *p) {
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        task_set_release(&p->sets[i]);
    free(p->sets);
    arena_release(&p->mem);
    free(p);
}

snap_status run_prompts_text(const run_prompts *p, const char *task, const char *problem,
                             const char *sha256, buf *out, snap_err *err) {
    const task_problem *found = NULL;
    for (size_t i = 0; p && i < p->n && !found; i++)
        if (text_equal(p->sets[i].task->name, task))
            found = task_problem_find(&p->sets[i], problem, NULL);
    if (!found || !text_equal(found->prompt_sha256, sha256))
        return SNAP_OK;
    if (found->n_messages != 1 || !text_equal(found->messages[0].role, "user"))
        return task_messages_json(found, out, err);
    (void)buf_puts(out, found->messages[0].content);
    return buf_check(out, "a prompt", err);
}
