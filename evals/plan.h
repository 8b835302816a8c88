/* plan.h - the work of a run: tasks x arms x problems x samples.
 *
 * A cell is one sample of one problem in one arm. Cells are numbered by task, then arm, then
 * problem, then sample. The plan gives all arms the same messages, byte for byte; settings of
 * requests may replace the system message. The seed of (task, problem, sample) is the same in all
 * arms that do not set a seed of their own. */
#ifndef SNAPMLA_EVALS_PLAN_H
#define SNAPMLA_EVALS_PLAN_H

#include "base/hash.h"
#include "evals/task.h"

typedef struct {
    task_set set; /* owned */
    int samples;  /* per problem */
    gen_sampling sampling;
    gen_settings settings; /* for all arms */
} eval_task;

/* The purpose of a control arm. CONTROL_NONE marks the arms under comparison. */
typedef enum {
    CONTROL_NONE,
    CONTROL_SEEDS,   /* the baseline again with other seeds: shows how large differences by chance
                        are */
    CONTROL_DAMAGED, /* known to be worse: shows whether these problems can detect damage at all */
} eval_control;
const char *eval_control_name(eval_control c); /* "seeds", "damaged"; NULL for none */

enum { ARM_HEADERS = 8 }; /* an arm has at most 8 `header` options */

/* Strings are borrowed from the plan's creator. */
typedef struct {
    const char *name;
    const char *spec;  /* argument of generator_open() */
    const char *kind;  /* "http", "local", "replay" */
    const char *model; /* NULL: not given */
    const char
        *precision; /* local: precision of the cache; otherwise the user's description; NULL: not
                       given */
    bool no_stream;
    int max_retries;                /* -1: the generator's default */
    double timeout_s;               /* 0: the generator's default */
    double deadline_s;              /* 0: the generator's default */
    double rpm, tpm;                /* requests and tokens per minute; 0: no limit */
    int in_flight;                  /* requests at once; 0: the run's option, or without it the
                                       generator's default */
    int context, cache_mb, threads; /* local: tokens per sequence, MiB of cache, threads; 0: the
                                       default */
    const char *chat_template; /* local: name of the chat template; NULL: the checkpoint's own */
    const char *device;        /* local: device that runs the model; NULL: the CPU */
    const char *layout;        /* local: such as "DP2" for two replicas of the model; NULL: one */

    /* http: where the arm's secrets are, not the secrets (harness/eval/arm_secrets.h) */
    const char *key_env;              /* environment variable of the API key; "none": no key; NULL:
                                         the general key */
    const char *headers[ARM_HEADERS]; /* "NAME:VARIABLE" or "NAME:@FILE" */
    int n_headers;
    bool from_file;   /* the arm is from a configuration file, not from the command line */
    const char *text; /* the option with the content of files in place of @FILE; NULL: it names no
                         file */

    eval_control control;

    gen_settings settings; /* replace the task's settings or are merged with them
                              (plan_settings.h) */

    /* Overrides of the task's sampling. If an arm's sampling differs from the baseline's in more
     * than the seed and may_differ, the two are not compared (plan_refusal()). */
    bool has_seed;
    uint64_t seed;
    double temperature; /* < 0: the task's */
    double top_p;       /* 0: the task's */
    int max_tokens;     /* 0: the task's */
    bool has_top_k, has_min_p, has_presence_penalty, has_frequency_penalty, has_repetition_penalty;
    gen_sampling more; /* the values of these five, where the arm has them */
} eval_arm;

/* The settings of the requests of one arm in one task. */
typedef struct {
    gen_settings all;
    const char *json;      /* the settings that can change an answer (gen_settings_json()); NULL:
                              none is set */
    char sha256[HASH_HEX]; /* SHA-256 of `json`; "" if there is none */
} eval_settings;

typedef struct {
    eval_task *tasks; /* [n_tasks], owned */
    eval_arm *arms;   /* [n_arms], owned; the first is the baseline */
    size_t n_tasks, n_arms;
    eval_settings *settings; /* [n_tasks * n_arms], owned (plan_settings_resolve()); NULL: no
                                request has settings */
    const char *may_differ;  /* comma list of what the user lets the arms' requests differ in, such
                                as "body,top_k"; NULL: nothing */
    double margin;           /* largest difference that counts as equal, fraction 0..1 */
    double max_lost_pct; /* if an arm lost a larger percentage of its samples, no comparison with it
                            is "equivalent" (lost.h) */

    /* For a run that several processes share: this process runs the cells for which plan_in_shard()
     * is true. shards = 0 or 1: one process runs all. */
    int shard, shards; /* 0..shards-1 */

    /* For tasks whose answers are programs. If rejudge is set, a run without a judge model may also
     * have tasks that a judge model grades. */
    int judge_jobs;                      /* programs run at once; 0: as many as processors */
    bool rejudge;                        /* also run programs that have a verdict */
    const volatile sig_atomic_t *cancel; /* a signal handler sets it to stop; may be NULL */
} eval_plan;

void plan_release(eval_plan *p);

typedef struct {
    size_t task, arm, problem;
    int sample;
} plan_cell;

size_t plan_cells(const eval_plan *p);

/* True if this process runs the cell, that is, if (conversation + sample) modulo shards is its
 * shard. A problem that is no turn counts as a conversation of its own. The arm makes no
 * difference. The shards have nearly equal sizes, and a cell stays in its shard when problems or
 * samples are added to the run. */
bool plan_in_shard(const eval_plan *p, plan_cell c);
size_t plan_shard_cells(const eval_plan *p); /* number of cells of this process */

plan_cell plan_cell_at(const eval_plan *p, size_t index);
size_t plan_index(const eval_plan *p, plan_cell c);

/* The sampling of an arm in a task. Its seed is the arm's or the run's, not the sample's. */
gen_sampling plan_sampling(const eval_plan *p, size_t task, size_t arm);

/* The settings of the requests of an arm in a task. */
const eval_settings *plan_settings(const eval_plan *p, size_t task, size_t arm);

/* Seed of a cell: a hash of (seed of plan_sampling(), task, problem, sample). It has 31 bits,
 * because servers differ in whether they accept more. */
uint64_t plan_seed(const eval_plan *p, plan_cell c);

/* The request of a cell; its id is the cell's index. Strings are borrowed from the plan. */
gen_request plan_request(const eval_plan *p, plan_cell c);

/* A server's message about a request in a form that may be stored (task_public_message()). */
const char *plan_public_message(const eval_plan *p, const gen_request *req, const char *message);

/* True if two arms of a task cannot be compared, because their requests differ in what may change
 * an answer and is not in may_differ. @why, of @cap bytes, gets the reason ("temperature differs: 1
 * against 0.6"), or "" if they can. */
bool plan_refusal(const eval_plan *p, size_t task, size_t a, size_t b, char *why, size_t cap);

/* Appends the names of all settings in which the requests of two arms differ and that may_differ
 * permits to differ: "body, top_k". */
void plan_declared(const eval_plan *p, size_t task, size_t a, size_t b, buf *out);

/* ---- resuming ---- */

/* What must stay the same when a run is resumed, as JSON: for each task the digests of the data
 * and of the task file, and the sampling and the settings of each arm; for each arm the generator,
 * the model and the precision. The number of problems and samples is left out, so a run can grow. A
 * server's address is left out, so it can move. The caller owns the result; NULL if memory is
 * exhausted. */
js *plan_identity(const eval_plan *p);

/* Compares a recorded identity with this plan's tasks and arms. SNAP_E_USAGE with the first
 * difference; SNAP_E_NOMEM. @run: the run's folder, for the message. */
snap_status plan_check_identity(const eval_plan *p, const js *recorded, const char *run,
                                snap_err *err) SNAP_CHECK_RESULT;

#endif
