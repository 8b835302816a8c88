/* plan.h - what a run will do: tasks x arms x problems x samples.
 *
 * One sample of one problem in one arm is a cell; cells are numbered task by task, in a task arm by
 * arm, in an arm problem by problem, in a problem sample by sample. All arms get byte-identical
 * prompts, and the seed of (task, problem, sample) is the same in every arm. */
#ifndef SNAPMLA_EVALS_PLAN_H
#define SNAPMLA_EVALS_PLAN_H

#include "evals/task.h"

typedef struct {
    task_set set; /* owned */
    int samples;  /* of each problem */
    gen_sampling sampling;
} eval_task;

/* What an arm is there to show, beside the arms that are to be compared. */
typedef enum {
    CONTROL_NONE,
    CONTROL_SEEDS,   /* the baseline again with other seeds: how far chance alone goes */
    CONTROL_DAMAGED, /* known to be worse: whether these problems can see damage at all */
} eval_control;
const char *eval_control_name(eval_control c); /* "seeds", "damaged"; NULL for none */

/* Texts are borrowed from whoever made the plan. */
typedef struct {
    const char *name;
    const char *spec;  /* as generator_open() takes it */
    const char *kind;  /* "http", "local", "replay" */
    const char *model; /* NULL: not given */
    const char
        *precision; /* local: of the cache; else what the user says runs there; NULL: not given */
    bool no_stream;
    int max_retries;                /* -1: the generator's default */
    double timeout_s;               /* 0: the generator's default */
    double deadline_s;              /* 0: the generator's default */
    double rpm, tpm;                /* requests and tokens a minute; 0: no limit */
    int in_flight;                  /* 0: the generator's default */
    int context, cache_mb, threads; /* local: tokens a sequence, MiB of cache; 0: the default */
    const char *chat_template;      /* local: NULL: the checkpoint's own */
    const char *device;             /* local: NULL: the CPU */

    eval_control control;

    /* Departures from the task's sampling. An arm with other seeds is a control; one with
     * another temperature, top_p or max_tokens is not comparable, and its pairs are refused. */
    bool has_seed;
    uint64_t seed;
    double temperature; /* < 0: the task's */
    double top_p;       /* 0: the task's */
    int max_tokens;     /* 0: the task's */
} eval_arm;

typedef struct {
    eval_task *tasks; /* [n_tasks], owned */
    eval_arm *arms;   /* [n_arms], owned; the first is the baseline */
    size_t n_tasks, n_arms;
    double margin; /* largest difference that counts as none, fraction 0..1 */

    /* Of a run that several processes share: this one asks what plan_is_asked() says. 0 of 0: all. */
    int shard, shards; /* 0..shards-1 */

    /* Of answers that are programs. */
    int judge_jobs;                      /* run at once; 0: one a processor */
    bool rejudge;                        /* also those that have a verdict */
    const volatile sig_atomic_t *cancel; /* set from a signal handler to stop; may be NULL */
} eval_plan;

void plan_release(eval_plan *p);

typedef struct {
    size_t task, arm, problem;
    int sample;
} plan_cell;

size_t plan_cells(const eval_plan *p);

/* Whether this process asks the cell: the one shard of (problem + sample) modulo shards, in all arms,
 * so that shards are of one size, and stay as they are when a run grows. */
bool plan_is_asked(const eval_plan *p, plan_cell c);
size_t plan_asked(const eval_plan *p); /* cells */

plan_cell plan_cell_at(const eval_plan *p, size_t index);
size_t plan_index(const eval_plan *p, plan_cell c);

/* The sampling of an arm in a task; its seed is the run's, not a sample's. */
gen_sampling plan_sampling(const eval_plan *p, size_t task, size_t arm);

/* Seed of a cell's sample: hash of (seed of the run, task, problem, sample), 31 bits, because
 * servers differ in what more they take. */
uint64_t plan_seed(const eval_plan *p, plan_cell c);

/* The request of a cell; its id is the cell's index. Texts are borrowed from the plan. */
gen_request plan_request(const eval_plan *p, plan_cell c);

/* What a server said of a request, as it may be kept (task_public_message()). */
const char *plan_public_message(const eval_plan *p, const gen_request *req, const char *message);

/* Why two arms of a task can't be compared ("temperature differs: 1 against 0.6"), in a buffer of
 * @cap bytes; false and "" when they can. */
bool plan_refusal(const eval_plan *p, size_t task, size_t a, size_t b, char *why, size_t cap);

/* ---- resuming ---- */

/* What the samples of a run depend on, as JSON: data, sampling and arms. NULL when out of memory;
 * caller owns it. Not in it: how many problems and samples, so that a run can grow; how a server is
 * reached, so that it can move. */
js *plan_identity(const eval_plan *p);

/* SNAP_E_USAGE naming the first thing in which the recorded identity and this plan's differ. */
snap_status plan_check_identity(const eval_plan *p, const js *recorded, const char *run,
                                snap_err *err) SNAP_CHECK_RESULT;

#endif
