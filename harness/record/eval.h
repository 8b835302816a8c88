/* eval.h - a row of the section `evals`: one task's accuracy in each arm, and the paired
 * differences. */
#ifndef SNAPMLA_HARNESS_RECORD_EVAL_H
#define SNAPMLA_HARNESS_RECORD_EVAL_H

#include "harness/record/plugin.h"

typedef struct {
    const char *file, *sha256;
    int64_t rows;
    const char *manifest; /* of datasets/manifest.json: "match", "differs", "unknown" */
} eval_dataset;

typedef struct {
    double temperature, top_p;
    int64_t top_k, max_tokens, seed;
} eval_sampling;

/* pass@k in percent; k = 1 is the accuracy of problems with a scored sample. */
typedef struct {
    int64_t k;
    double pct;
} pass_record;

typedef struct {
    pass_record *at;
    size_t n;
} pass_list;

/* The connections of an arm's client in its last session, and its own delay in handling what
 * came. */
typedef struct {
    bool exists;
    int64_t transfers, connections, outages;
    double lag_ms_p99, lag_ms_max;
} client_record;

typedef struct {
    const char *name;
    const char *generator; /* "local", "http", "replay" */
    const char *endpoint;  /* URL of an http generator */
    const char *model, *precision;
    const char *source; /* what the arm's option named: "local:DIR" */
    const char *device;
    const char *checkpoint_sha256; /* of what sha256sum prints of the checkpoint's files, by name */
    plugin_record plugin;          /* of a backend from a plugin */
    const char *origin;            /* "measured", "reported" */
    int64_t samples, scored, failed;
    int64_t identical_samples; /* equal to the baseline's, byte by byte */
    double accuracy_pct, se_pct, ci95_pct[2];
    pass_list pass_at;
    double maj_at_k_pct;      /* majority of all samples of a problem */
    double sampling_variance; /* mean over problems of p (1 - p) */
    double truncated_pct, empty_pct, unparsed_pct, failed_pct;
    double completion_tokens_mean;
    double ttft_ms_median;            /* time to the first token */
    double itl_ms_median, itl_ms_p99; /* time between tokens */
    double tok_s;                     /* tokens per second */
    client_record client;
} arm_record;

typedef struct {
    arm_record *at;
    size_t n;
} arm_list;

/* Problems that only one of two arms solved, or solved more often. */
typedef struct {
    bool exists;
    int64_t baseline_only, arm_only;
} discordant_record;

/* The arm's completions against the baseline's. */
typedef struct {
    bool exists;
    double ratio, ci95_ratio[2];
    double delta_tokens, ci95_tokens[2];
} length_record;

/* An arm against its baseline; differences in percentage points, the arm's minus the baseline's. */
typedef struct {
    const char *baseline, *arm;
    const char *control;     /* "seeds", "damaged"; "" for an arm that is to be compared */
    const char *sensitivity; /* "sees damage", "blind"; "" for any but a damaged arm */
    int64_t problems;
    double delta_pp, se_pp, ci90_pp[2], ci95_pp[2], bootstrap95_pp[2], margin_pp;
    const char *verdict; /* "equivalent", "not shown", "different"; "" where it is refused */
    double p_tost, p_sign_flip, p_mcnemar, p_holm;
    discordant_record discordant;
    length_record length;
    const char *refused; /* why the arms are not compared; "" where they are */
} pair_record;

typedef struct {
    pair_record *at;
    size_t n;
} pair_list;

typedef struct {
    const char *task;   /* "ifeval", "ifeval:prompt_loose" */
    const char *metric; /* what the accuracies are of, where a task has several */
    eval_dataset dataset;
    const char *prompt_sha256, *grader;
    eval_sampling sampling;
    int64_t problems, samples_per_problem;
    arm_list arms;
    pair_list pairs;
} eval_record;

extern const record_type eval_type, eval_dataset_type, eval_sampling_type;
extern const record_type arm_type, pair_type, client_type;

typedef struct {
    eval_record *at;
    size_t n;
} eval_list;

/* The arm of that name; NULL where there is none. */
const arm_record *eval_arm_of(const eval_record *e, const char *name);

/* pass@k of all samples of a problem, in percent; NAN where each has one sample. */
double arm_pass_of_all(const arm_record *a);

#endif
