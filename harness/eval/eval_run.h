/* eval_run.h - one evaluation, from options to a RUN folder:
 *
 *   samples.jsonl   every sample (evals/samples.h)
 *   journal         the configuration of the run, the statistics of its clients and the digests of
 *                   its models; while it is open, a second process is refused
 *   run.json        the result file (not for a shard); the report lies beside it, if the caller has
 *                   one written
 *   log             a log with times, for people
 *
 * Generating, grading and comparing are separate steps. If a run was interrupted, the same command
 * continues it. A complete run is only graded and compared again. */
#ifndef SNAPMLA_HARNESS_EVAL_EVAL_RUN_H
#define SNAPMLA_HARNESS_EVAL_EVAL_RUN_H

#include "harness/eval/generate.h"
#include "harness/opt.h"
#include "harness/record/results.h"

/* Writes a report of @r into @dir, the RUN folder. */
typedef snap_status (*eval_report_fn)(results *r, const char *dir, bool keep_gpqa_text,
                                      snap_err *err);

/* samples, max_tokens, top_p and margin_pp: 0 means the value of the suite. If the suite has no
 * value for samples or margin_pp, it is that of the task. temperature: -1 means the value of the
 * suite. limit: 0 means all problems. judge_jobs: 0 means one per processor. "A regraded run" is
 * the run whose stored answers `regrade` grades again. */
typedef struct {
    const char *suite; /* --suite */
    const char *data;  /* folder or file; NULL: the program's own datasets/ */
    opt_list arms;     /* NAME=GENERATOR[,key=value...] */
    /* For tasks whose problems the program makes (task_options) */
    const char *lengths, *tokenizer; /* NULL: the lengths of the task, and the tokenizer of the
                                        first local arm */
    double chars_per_token;          /* 0: not given */
    const char *shard;               /* "2/4": the shard of this process; NULL: the whole run */
    const char *out;                 /* the RUN folder */
    int64_t samples, limit, max_tokens, seed;
    int64_t thinking_budget; /* limit of reasoning tokens, sent to servers; 0: as in the suite */
    /* what the arms' requests may differ in: "body,top_k"; NULL: nothing, or that of a regraded
     * run */
    const char *may_differ;
    double temperature, top_p, margin_pp;
    double max_lost_pct; /* if an arm lost a larger percentage of its samples, no verdict is
                            "equivalent"; below 0: 1 %, or that of a regraded run */
    const char
        *math_policy; /* "truth", "field", "strict"; NULL: "truth", or that of a regraded run */
    const char *gpqa_password; /* NULL: the published one */
    bool keep_gpqa_text;
    const char *judge; /* the judge of programs: "real", "lcb"; NULL: "real", or that of a regraded
                          run */
    int64_t judge_jobs;
    const char *judge_model; /* the judge of open answers: "GENERATOR[,key=value...]" (games.h);
                                NULL: none */
    const char *lcb_version, *lcb_from, *lcb_to; /* as in task_options */
    /* "seeds": the baseline with other seeds;
     * "damaged=GENERATOR[,key=value...]": an arm known to be worse */
    opt_list controls;
    bool regrade;       /* generate nothing; take suite, arms and sampling from the journal, and the
                           data folder, too, if `data` is NULL */
    bool keep_verdicts; /* in a regrade, run only the programs that have no verdict yet */
    generate_options generate;
    eval_report_fn report; /* called after the result file is saved; NULL: no report */
} eval_options;

/**
 * eval_run - run an evaluation, or continue one
 *
 * @config: the resolved options, for the result file. A regrade stores those of the run that made
 *          the samples, with its own values of out, data, margin, max-lost, may-differ, math-policy
 *          and judge.
 * @out:    the saved result; caller owns it, results_free(). NULL after all errors but the
 *          SNAP_E_NET below, and for a shard: its samples are graded and kept for merge_shards().
 *
 * SNAP_E_CANCELLED if it was interrupted; SNAP_E_USAGE for wrong options and for a RUN folder of
 * another configuration; SNAP_E_NET if an arm has no scored sample (then the result is saved and
 * *out is set); errors of files and generators.
 */
snap_status eval_run(const eval_options *options, const js *config, results **out,
                     snap_err *err) SNAP_CHECK_RESULT;

#endif
