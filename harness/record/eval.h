/* eval.h - a row of the section `evals`: one task's accuracy in each arm, and the paired
 * differences. */
#ifndef SNAPMLA_HARNESS_RECORD_EVAL_H
#define SNAPMLA_HARNESS_RECORD_EVAL_H

#include "harness/record/plugin.h"

typedef struct {
    const char *file, *sha256;
    int64_t rows;
    const char *manifest; /* the file compared with datasets/manifest.json. "match": a checksum of
                             the set is that of the file. If none is: "differs", or "unverified" if
                             the manifest lacks the checksum of a file of the set. "unknown": the
                             manifest does not list the set (older files: or has no checksum) */
} eval_dataset;

typedef struct {
    double temperature, top_p;
    int64_t top_k, max_tokens, seed;
    double min_p, presence_penalty, frequency_penalty, repetition_penalty; /* missing: off */
} eval_sampling;

/* pass@k in percent. For k = 1 it is the accuracy over the problems that have a scored sample. */
typedef struct {
    int64_t k;
    double pct;
} pass_record;

typedef struct {
    pass_record *at;
    size_t n;
} pass_list;

/* Why samples failed, and how many did for this reason. */
typedef struct {
    const char *reason;
    int64_t count;
} failure_record;

typedef struct {
    failure_record *at;
    size_t n;
} failure_list;

/* What an arm's HTTP client counted in the last session with transfers; in a merged run, the sums
 * and the longest lags of the parts. The lag is the delay with which the client itself handled
 * network events. */
typedef struct {
    bool exists;
    int64_t transfers, connections, outages;
    double lag_ms_p99, lag_ms_max;
} client_record;

/* The model of --judge-model, which judged open answers or gave second opinions. */
typedef struct {
    bool exists;
    const char *generator; /* "local", "http", "replay" */
    const char *host;      /* hosts of an http generator: "127.0.0.1:8000"; else "" */
    const char *source;    /* what the option named, without folders; "" for http */
    const char *model;
    const char *sampling; /* "temperature 0, top_p 1, max_tokens 16000" */
    const char *request;  /* settings of its requests as JSON; "" if there are none */
} judge_record;

/* What the judge model said about an arm's answers that the rules leave undecided. An answer that
 * it accepts counts as correct in accuracy_pct here, but nowhere else. */
typedef struct {
    bool exists;
    int64_t undecided, asked, accepted, refused;
    int64_t none; /* undecided answers without an opinion */
    double accuracy_pct;
} opinion_record;

typedef struct {
    const char *name;
    const char *generator; /* "local", "http", "replay" */
    const char *endpoint;  /* URL of an http generator */
    const char *model, *precision;
    const char *source; /* what the arm's option named, without folders: "local:NAME"; "" for
                           http */
    const char *device;
    const char *layout; /* "DP2": replicas of the model on these devices; "TP2": the model is split
                           over them; "" = one device */
    const char *checkpoint_sha256; /* SHA-256 of the text that sha256sum prints for the checkpoint's
                                      files, sorted by name */
    const char *format_sha256;     /* hash of the file of a local arm's cache format; "": it has
                                      none */
    plugin_record plugin;          /* the shared object, if a local arm's backend is a plugin */
    const char *origin;            /* "measured", "reported" */
    int64_t samples, scored, failed;
    int64_t repaired; /* scored samples whose text was not Unicode; U+FFFD replaces what was not */
    int64_t identical_samples; /* samples whose text repeats that of an earlier sample of the same
                                  problem */
    double accuracy_pct, se_pct, ci95_pct[2];
    pass_list pass_at;
    double maj_at_k_pct;      /* accuracy of the majority answer over all samples of a problem */
    double sampling_variance; /* variance of a sample's score within its problem: the unbiased
                                 estimates of all problems with two and more scored samples,
                                 averaged */
    double truncated_pct, empty_pct, unparsed_pct, failed_pct, repaired_pct;
    double completion_tokens_mean;
    double reasoning_tokens_mean, answer_tokens_mean; /* as far as the server reports them */
    double reasoning_chars_mean, answer_chars_mean;   /* means over the samples that have these
                                                         counts */
    const char *request;     /* settings of the arm's requests as JSON; "" if there are none */
    const char *sampling;    /* the arm's sampling if it is not that of the row, without the seed */
    const char *shared_with; /* another arm that used the same server or processor at the same time;
                                then the four times below do not exist. "" if there is none */
    double ttft_ms_median;   /* time to the first token */
    double itl_ms_median, itl_ms_p99; /* time between tokens */
    double tok_s;                     /* tokens per second */
    client_record client;
    failure_list failures; /* the most frequent reasons first; the last entry may stand for all
                              other reasons */
    opinion_record opinions;
} arm_record;

typedef struct {
    arm_record *at;
    size_t n;
} arm_list;

/* Numbers of problems that only one of the two arms solved, or that it solved more often than the
 * other arm. */
typedef struct {
    bool exists;
    int64_t baseline_only, arm_only;
} discordant_record;

/* Lengths of the arm's completions compared with those of the baseline. */
typedef struct {
    bool exists;
    double ratio, ci95_ratio[2];
    double delta_tokens, ci95_tokens[2];
} length_record;

/* The comparison with the accuracies of opinion_record. */
typedef struct {
    bool exists;
    double delta_pp, ci95_pp[2];
} opinion_difference;

#define PAIR_DETECTS 0.9 /* probability of pair_record.detectable_pp */

/* An arm compared with its baseline: in one task or, in the section "pooled", over all tasks of a
 * run. Differences are the arm's value minus the baseline's, in percentage points. */
typedef struct {
    const char *baseline, *arm;
    const char *control;     /* "seeds", "damaged"; "" for an arm that is no control */
    const char *sensitivity; /* "sees damage", "blind"; "" unless the arm is damaged and was
                                compared */
    record_texts tasks;      /* for a row of the section "pooled": its tasks; NULL for other rows */
    int64_t problems;
    double delta_pp, se_pp, ci90_pp[2], ci95_pp[2], bootstrap95_pp[2], margin_pp;
    const char *verdict;  /* "equivalent", "not shown", "different"; "" if the comparison was
                            refused */
    const char *withheld; /* why the verdict cannot be "equivalent": an arm lost more than
                             max_lost_pct of its samples; "" if it can */
    double detectable_pp; /* the loss that the comparison would have shown with probability
                             PAIR_DETECTS (stats_detectable_loss()) */
    double max_lost_pct;
    double p_tost, p_sign_flip, p_mcnemar, p_holm;
    double p_failed, p_repaired; /* p values of sign-flip tests over problems: do the arms differ in
                                    the share of failed samples, and in that of repaired ones? */
    discordant_record discordant;
    length_record length;
    opinion_difference opinions;
    const char *refused;  /* why the comparison was refused; "" if it was made */
    const char *declared; /* what the arms' requests differ in, as the user allows: "body, top_k" */
} pair_record;

typedef struct {
    pair_record *at;
    size_t n;
} pair_list;

/* The accuracy of one arm in a group of problems. */
typedef struct {
    const char *name;
    int64_t problems, scored;
    double accuracy_pct, ci95_pct[2];
    double prompt_tokens_mean; /* as far as the server reports them */
} group_arm_record;

typedef struct {
    group_arm_record *at;
    size_t n;
} group_arm_list;

/* The problems with one value of a field, such as a length of 4096 tokens, or with one value each
 * of two fields (evals/score_groups.h). */
typedef struct {
    record_texts by, at; /* the fields and their values: "length", "depth" and "4096", "0.5" */
    int64_t problems;
    group_arm_list arms;
    pair_list pairs; /* p_holm is over the groups of the same fields */
} group_record;

typedef struct {
    group_record *at;
    size_t n;
} group_list;

typedef struct {
    const char *task;   /* "ifeval", "ifeval:prompt_loose" */
    const char *title;  /* title of the task: "IFEval"; "" in older files */
    const char *metric; /* what the accuracies measure, for tasks that have several metrics */
    eval_dataset dataset;
    const char *prompt_sha256, *grader;
    const char *task_sha256; /* SHA-256 of the task file; "": the result states none */
    eval_sampling sampling;
    int64_t problems, samples_per_problem;
    int64_t turns;     /* turns of the longest conversation; missing: there are no conversations */
    double chance_pct; /* accuracy of guessing; missing if it is about 0 or unknown */
    double margin_pp, max_lost_pct; /* the run's margin and limit of lost samples; missing in older
                                       files. The comparisons of the row have the same values */
    judge_record judge;
    arm_list arms;
    pair_list pairs;
    group_list groups; /* the results by groups; empty for a task without groups */
} eval_record;

/* What a reader must know about the data: "data UNVERIFIED", "data DIFFER from the manifest", or
 * "". */
const char *eval_data_mark(const eval_record *e);

extern const record_type eval_type, eval_dataset_type, eval_sampling_type;
extern const record_type arm_type, pair_type, client_type, judge_type, failure_type;

typedef struct {
    eval_record *at;
    size_t n;
} eval_list;

/* Whether the arms of a pair of this row lost too many samples for the verdict "equivalent"
 * (evals/lost.h). If so, writes the reason to @why, else "". The limit is max_lost_pct of the row,
 * or the default in an older row that does not have it. */
bool eval_lost_too_many(const eval_record *e, const pair_record *pair, char *why, size_t cap);

/* The smallest difference that a problem's (or conversation's) score can have, other than 0. */
double eval_step(const eval_record *e);

/* Whether the row can hardly show damage. There are three possible reasons: the baseline is almost
 * always right (99.5 % or more), it is not shown to be better than guessing, or a damaged arm was
 * not found worse. Writes the reason to @why, else "". */
bool eval_is_blind(const eval_record *e, char *why, size_t cap);

/* The arm with the name @name, or NULL. */
const arm_record *eval_arm_of(const eval_record *e, const char *name);

/* pass@k in percent for the largest k of the list; NAN if the list has no k above 1. */
double arm_pass_of_all(const arm_record *a);

#endif
