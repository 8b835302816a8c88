/* eval_run.h - one evaluation from options to a RUN folder:
 *
 *   samples.jsonl   every sample (evals/samples.h)
 *   journal         what the run is of, and its lock: a second process or another configuration is
 *                   refused
 *   run.json        the result file, and beside it the report, if the caller has one written
 *   log             what happened when
 *
 * Generating, grading and comparing are separate steps. A run that was killed goes on where it
 * stopped when the same command is given again; one that is complete is graded and compared again,
 * and nothing is generated. */
#ifndef SNAPMLA_HARNESS_EVAL_EVAL_RUN_H
#define SNAPMLA_HARNESS_EVAL_EVAL_RUN_H

#include "harness/eval/generate.h"
#include "harness/opt.h"
#include "harness/record/results.h"

/* Writes a report of @r into @dir, the RUN folder. */
typedef snap_status (*eval_report_fn)(results *r, const char *dir, bool keep_gpqa_text,
                                      snap_err *err);

/* 0, or -1 for the temperature, means: what the suite says. */
typedef struct {
    const char *suite; /* --suite */
    const char *data;  /* folder or file */
    opt_list arms;     /* NAME=GENERATOR[,key=value...] */
    const char *shard; /* "2/4": this process's part of the run; NULL: all of it */
    const char *out;   /* the RUN folder */
    int64_t samples, limit, max_tokens, seed;
    double temperature, top_p, margin_pp;
    const char *math_policy;   /* "field", "strict"; NULL: field, or what a regraded run had */
    const char *gpqa_password; /* NULL: the published one */
    bool keep_gpqa_text;
    const char *judge; /* of programs: "real", "lcb"; NULL: real, or what a regraded run had */
    int64_t judge_jobs;
    const char *judge_model; /* of open answers: "GENERATOR[,key=value...]" (games.h); NULL: none */
    const char *lcb_version, *lcb_from, *lcb_to; /* as in task_options */
    /* "seeds": the baseline with other seeds; "damaged=GENERATOR[,key=value...]": an arm that is
     * known to be worse */
    opt_list controls;
    bool regrade;       /* generate nothing; suite, data and arms default to the recorded ones */
    bool keep_verdicts; /* a regrade runs those programs only that have no verdict yet */
    generate_options generate;
    eval_report_fn report; /* called when the result file is saved; NULL: no report */
} eval_options;

/**
 * eval_run - run, or go on with, an evaluation
 *
 * @config: the resolved options, for the result file; a regrade stores those of the run that made
 *          the samples, with what it was given anew (data, margin, policy)
 * @out:    the saved result; caller owns it, results_free(); NULL on failure, and for a shard,
 *          whose samples are judged and kept for merge_shards()
 *
 * SNAP_E_CANCELLED with how to go on; SNAP_E_USAGE for wrong options and for a RUN folder of
 * another configuration; SNAP_E_NET when all samples of an arm failed (the result is saved then,
 * and *out set); else what files and generators give.
 */
snap_status eval_run(const eval_options *options, const js *config, results **out,
                     snap_err *err) SNAP_CHECK_RESULT;

#endif
