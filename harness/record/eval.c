#include "harness/record/eval.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "evals/lost.h"
#include "harness/record/words.h"

/* clang-format off */
static const char *const kManifest[] = {"match", "differs", "unknown", "unverified", NULL};
static const char *const kControls[] = {"seeds", "damaged", NULL};
static const char *const kSensitivity[] = {"sees damage", "blind", NULL};
static const char *const kVerdicts[] = {"equivalent", "not shown", "different", NULL};

enum {
    NUL = FIELD_NULLABLE,
    OPT = FIELD_OPTIONAL,
    FROM_0 = FIELD_NULLABLE | FIELD_FROM_0,
    PERCENT = FIELD_NULLABLE | FIELD_PERCENT,
};

static const field dataset_fields[] = {
    {FIELD_OF(eval_dataset, file), FIELD_TEXT},
    {FIELD_OF(eval_dataset, sha256), FIELD_TEXT, FIELD_SHA256, .csv = "dataset_sha256"},
    {FIELD_OF(eval_dataset, rows), FIELD_COUNT},
    {FIELD_OF(eval_dataset, manifest), FIELD_TEXT, .words = kManifest},
};
const record_type eval_dataset_type = {
    .name = "dataset", .size = sizeof(eval_dataset), RECORD_FIELDS(dataset_fields)};

static const field sampling_fields[] = {
    {FIELD_OF(eval_sampling, temperature), FIELD_NUMBER},
    {FIELD_OF(eval_sampling, top_p), FIELD_NUMBER},
    {FIELD_OF(eval_sampling, top_k), FIELD_COUNT},
    {FIELD_OF(eval_sampling, max_tokens), FIELD_COUNT},
    {FIELD_OF(eval_sampling, seed), FIELD_INTEGER},
    {FIELD_OF(eval_sampling, min_p), FIELD_NUMBER, OPT},
    {FIELD_OF(eval_sampling, presence_penalty), FIELD_NUMBER, OPT},
    {FIELD_OF(eval_sampling, frequency_penalty), FIELD_NUMBER, OPT},
    {FIELD_OF(eval_sampling, repetition_penalty), FIELD_NUMBER, OPT},
};
const record_type eval_sampling_type = {
    .name = "sampling", .size = sizeof(eval_sampling), RECORD_FIELDS(sampling_fields),
    .open = true};

static const field pass_fields[] = {
    {FIELD_OF(pass_record, k), FIELD_COUNT, .low = 1},
    {FIELD_OF(pass_record, pct), FIELD_NUMBER, PERCENT},
};
static const record_type pass_type = {
    .name = "pass", .size = sizeof(pass_record), RECORD_FIELDS(pass_fields)};

static const field failure_fields[] = {
    {FIELD_OF(failure_record, reason), FIELD_TEXT, FIELD_NAME, .csv = "reason"},
    {FIELD_OF(failure_record, count), FIELD_COUNT, .low = 1, .csv = "count"},
};
const record_type failure_type = {
    .name = "failure", .about = "why samples failed, and how many",
    .size = sizeof(failure_record), RECORD_FIELDS(failure_fields)};

static const field client_fields[] = {
    {FIELD_OF(client_record, transfers), FIELD_COUNT},
    {FIELD_OF(client_record, connections), FIELD_COUNT},
    {FIELD_OF(client_record, outages), FIELD_COUNT},
    {FIELD_OF(client_record, lag_ms_p99), FIELD_NUMBER, FROM_0, .csv = "lag_ms"},
    {FIELD_OF(client_record, lag_ms_max), FIELD_NUMBER, FROM_0},
};
const record_type client_type = {
    .name = "client",
    .about = "connections of the HTTP client in the last session, and its delay in handling events",
    .size = sizeof(client_record), RECORD_FIELDS(client_fields),
    .exists = RECORD_MEMBER(client_record, exists)};

static const field judge_fields[] = {
    {FIELD_OF(judge_record, generator), FIELD_TEXT, FIELD_NAME, .csv = "judge"},
    {FIELD_OF(judge_record, host), FIELD_TEXT, NUL, .csv = "judge_host"},
    {FIELD_OF(judge_record, source), FIELD_TEXT, NUL},
    {FIELD_OF(judge_record, model), FIELD_TEXT, NUL, .csv = "judge_model"},
    {FIELD_OF(judge_record, sampling), FIELD_TEXT, .csv = "judge_sampling"},
    {FIELD_OF(judge_record, request), FIELD_TEXT, NUL, .csv = "judge_request",
     .about = "settings of its requests, beside messages and sampling, as JSON"},
};
const record_type judge_type = {
    .name = "judge",
    .about = "the model that judged open answers, or gave second opinions about answers that the "
             "rules leave undecided",
    .size = sizeof(judge_record), RECORD_FIELDS(judge_fields),
    .exists = RECORD_MEMBER(judge_record, exists)};

static const field opinion_fields[] = {
    {FIELD_OF(opinion_record, undecided), FIELD_COUNT, .csv = "undecided",
     .about = "scored answers that the rules show neither to be equal to the gold nor to differ; "
              "none of them counts as correct in the arm's own accuracy_pct"},
    {FIELD_OF(opinion_record, asked), FIELD_COUNT, .csv = "opinions_asked"},
    {FIELD_OF(opinion_record, accepted), FIELD_COUNT, .csv = "opinions_accepted"},
    {FIELD_OF(opinion_record, refused), FIELD_COUNT, .csv = "opinions_refused"},
    {FIELD_OF(opinion_record, none), FIELD_COUNT, .csv = "opinions_none",
     .about = "undecided answers without an opinion, because the request failed or its reply was "
              "neither YES nor NO"},
    {FIELD_OF(opinion_record, accuracy_pct), FIELD_NUMBER, PERCENT, .csv = "opinions_accuracy_pct",
     .about = "accuracy if the accepted answers counted as correct"},
};
static const record_type opinion_type = {
    .name = "opinions", .about = "second opinions of a judge model; no verdict uses them",
    .size = sizeof(opinion_record), RECORD_FIELDS(opinion_fields),
    .exists = RECORD_MEMBER(opinion_record, exists)};

static const field plugin_fields[] = {
    {FIELD_OF(plugin_record, file), FIELD_TEXT, FIELD_NAME},
    {FIELD_OF(plugin_record, sha256), FIELD_TEXT, FIELD_SHA256},
};
const record_type plugin_type = {
    .name = "plugin", .about = "the shared object of a plugin backend",
    .size = sizeof(plugin_record), RECORD_FIELDS(plugin_fields),
    .exists = RECORD_MEMBER(plugin_record, exists)};

#define A(member) FIELD_OF(arm_record, member)
static const field arm_fields[] = {
    {A(name), FIELD_TEXT, FIELD_NAME, .csv = "arm"},
    {A(generator), FIELD_TEXT, FIELD_NAME, .csv = "generator"},
    {A(endpoint), FIELD_TEXT, NUL | OPT, .csv = "endpoint"},
    {A(model), FIELD_TEXT, NUL, .csv = "model"},
    {A(precision), FIELD_TEXT, NUL | OPT},
    {A(source), FIELD_TEXT, NUL | OPT},
    {A(device), FIELD_TEXT, NUL | OPT},
    {A(layout), FIELD_TEXT, OPT,
     .about = "of a local arm on several devices: DP2 = two replicas of the model, TP2 = the model "
              "is split over two; absent = one"},
    {A(checkpoint_sha256), FIELD_TEXT, NUL | OPT | FIELD_SHA256,
     .about = "of the text that sha256sum prints for the checkpoint's files, sorted by name"},
    {A(format_sha256), FIELD_TEXT, OPT | FIELD_SHA256,
     .about = "of the file of the cache format in docs/formats.md; absent = the precision has "
              "none"},
    {A(plugin), FIELD_RECORD, NUL | OPT, .of = &plugin_type},
    {A(samples), FIELD_COUNT, .csv = "samples"},
    {A(scored), FIELD_COUNT, .csv = "scored"},
    {A(failed), FIELD_COUNT, .csv = "failed"},
    {A(repaired), FIELD_COUNT, OPT, .csv = "repaired",
     .about = "scored samples whose text was not Unicode; U+FFFD replaces what was not"},
    {A(accuracy_pct), FIELD_NUMBER, PERCENT, .csv = "accuracy_pct"},
    {A(se_pct), FIELD_NUMBER, FROM_0, .csv = "se_pct"},
    {A(ci95_pct), FIELD_INTERVAL, NUL, .csv = "ci95"},
    {A(pass_at), FIELD_RECORDS, OPT, .of = &pass_type,
     .about = "pass@k, unbiased; k = 1 is the accuracy of problems with a scored sample"},
    {A(maj_at_k_pct), FIELD_NUMBER, PERCENT | OPT, .csv = "maj_at_k_pct"},
    {A(sampling_variance), FIELD_NUMBER, FROM_0 | OPT,
     .about = "variance of a sample's score around its problem's mean: unbiased, mean over "
              "the problems with two and more scored samples; `eval plan --from` reads it"},
    {A(truncated_pct), FIELD_NUMBER, PERCENT, .csv = "truncated_pct"},
    {A(empty_pct), FIELD_NUMBER, PERCENT, .csv = "empty_pct"},
    {A(unparsed_pct), FIELD_NUMBER, PERCENT, .csv = "unparsed_pct"},
    {A(failed_pct), FIELD_NUMBER, PERCENT, .csv = "failed_pct"},
    {A(repaired_pct), FIELD_NUMBER, PERCENT | OPT, .csv = "repaired_pct",
     .about = "of the scored samples"},
    {A(identical_samples), FIELD_COUNT, NUL | OPT, .csv = "identical_samples"},
    {A(completion_tokens_mean), FIELD_NUMBER, FROM_0 | OPT, .csv = "tokens_mean"},
    {A(reasoning_tokens_mean), FIELD_NUMBER, FIELD_FROM_0 | OPT, .csv = "reasoning_tokens_mean",
     .about = "completion tokens that are reasoning, of the samples whose server reports them"},
    {A(answer_tokens_mean), FIELD_NUMBER, FIELD_FROM_0 | OPT, .csv = "answer_tokens_mean",
     .about = "the other completion tokens of these samples"},
    {A(reasoning_chars_mean), FIELD_NUMBER, FIELD_FROM_0 | OPT, .csv = "reasoning_chars_mean",
     .about = "Unicode characters of the reasoning with its tags, of the samples that have "
              "reasoning or whose server counts it"},
    {A(answer_chars_mean), FIELD_NUMBER, FIELD_FROM_0 | OPT, .csv = "answer_chars_mean",
     .about = "Unicode characters of the rest of these samples' text"},
    {A(request), FIELD_TEXT, OPT | FIELD_OMITTED, .csv = "request",
     .about = "settings of the arm's requests, beside messages and sampling, as JSON"},
    {A(sampling), FIELD_TEXT, OPT | FIELD_OMITTED, .csv = "arm_sampling",
     .about = "the arm's sampling without the seed, if it differs from that of the row"},
    {A(shared_with), FIELD_TEXT, NUL | OPT, .csv = "shared_with",
     .about = "another arm that used the same server or processor at the same time, so this arm "
              "has no times"},
    {A(ttft_ms_median), FIELD_NUMBER, FROM_0 | OPT, .csv = "ttft_ms"},
    {A(itl_ms_median), FIELD_NUMBER, FROM_0 | OPT, .csv = "itl_ms"},
    {A(itl_ms_p99), FIELD_NUMBER, FROM_0 | OPT},
    {A(tok_s), FIELD_NUMBER, FROM_0 | OPT, .csv = "tok_s"},
    {A(client), FIELD_RECORD, NUL | OPT, .of = &client_type},
    {A(failures), FIELD_RECORDS, OPT, .of = &failure_type,
     .about = "why samples failed, the most frequent reasons first; messages that differ only in "
              "numbers are one reason"},
    {A(opinions), FIELD_RECORD, OPT | FIELD_OMITTED, .of = &opinion_type},
    {A(origin), FIELD_TEXT, .words = record_origins, .csv = "origin"},
};
#undef A
const record_type arm_type = {.name = "arm", .size = sizeof(arm_record), RECORD_FIELDS(arm_fields)};

static const field discordant_fields[] = {
    {FIELD_OF(discordant_record, baseline_only), FIELD_COUNT, .csv = "baseline_only"},
    {FIELD_OF(discordant_record, arm_only), FIELD_COUNT, .csv = "arm_only"},
};
static const record_type discordant_type = {
    .name = "discordant", .size = sizeof(discordant_record), RECORD_FIELDS(discordant_fields),
    .exists = RECORD_MEMBER(discordant_record, exists)};

static const field length_fields[] = {
    {FIELD_OF(length_record, ratio), FIELD_NUMBER, FROM_0, .csv = "length_ratio"},
    {FIELD_OF(length_record, ci95_ratio), FIELD_INTERVAL, NUL | OPT},
    {FIELD_OF(length_record, delta_tokens), FIELD_NUMBER, NUL},
    {FIELD_OF(length_record, ci95_tokens), FIELD_INTERVAL, NUL},
};
static const record_type length_type = {
    .name = "length", .about = "the arm's completions against the baseline's",
    .size = sizeof(length_record), RECORD_FIELDS(length_fields),
    .exists = RECORD_MEMBER(length_record, exists)};

static const field opinion_difference_fields[] = {
    {FIELD_OF(opinion_difference, delta_pp), FIELD_NUMBER, NUL, .csv = "opinions_delta_pp"},
    {FIELD_OF(opinion_difference, ci95_pp), FIELD_INTERVAL, NUL, .csv = "opinions_ci95"},
};
static const record_type opinion_difference_type = {
    .name = "opinion_difference",
    .about = "the paired difference if the answers that the judge model accepts counted as correct",
    .size = sizeof(opinion_difference), RECORD_FIELDS(opinion_difference_fields),
    .exists = RECORD_MEMBER(opinion_difference, exists)};

#define P(member) FIELD_OF(pair_record, member)
static const field pair_fields[] = {
    {P(baseline), FIELD_TEXT, FIELD_NAME, .csv = "baseline"},
    {P(arm), FIELD_TEXT, FIELD_NAME, .csv = "arm"},
    {P(control), FIELD_TEXT, NUL | OPT | FIELD_WAS_BOOL, .words = kControls, .csv = "control",
     .about = "kind of control. seeds: the baseline with other seeds, which gives the noise floor; "
              "damaged: an arm known to be worse. Older files have true instead of seeds"},
    {P(sensitivity), FIELD_TEXT, NUL | OPT, .words = kSensitivity, .csv = "sensitivity",
     .about = "of a damaged arm: whether the comparison detects that it is worse (its 95 % "
              "interval lies below 0)"},
    {P(tasks), FIELD_TEXTS, OPT, .csv = "tasks",
     .about = "of a row of the section pooled: the tasks that are compared together"},
    {P(problems), FIELD_COUNT, .csv = "problems"},
    {P(delta_pp), FIELD_NUMBER, NUL, .csv = "delta_pp"},
    {P(se_pp), FIELD_NUMBER, FROM_0, .csv = "se_pp"},
    {P(ci90_pp), FIELD_INTERVAL, NUL, .csv = "ci90"},
    {P(ci95_pp), FIELD_INTERVAL, NUL, .csv = "ci95"},
    {P(bootstrap95_pp), FIELD_INTERVAL, NUL | OPT},
    {P(margin_pp), FIELD_NUMBER, FIELD_ABOVE_0, .csv = "margin_pp"},
    {P(verdict), FIELD_TEXT, NUL, .words = kVerdicts, .csv = "verdict"},
    {P(withheld), FIELD_TEXT, NUL | OPT, .csv = "withheld",
     .about = "why the verdict cannot be equivalent: an arm lost more than max_lost_pct of its "
              "samples"},
    {P(detectable_pp), FIELD_NUMBER, NUL | OPT | FIELD_PERCENT, .csv = "detectable_pp",
     .about = "the smallest true loss that this comparison would have shown (95 % interval below "
              "0) with probability 90 %"},
    {P(max_lost_pct), FIELD_NUMBER, PERCENT | OPT, .csv = "max_lost_pct"},
    {P(p_tost), FIELD_NUMBER, NUL, .csv = "p_tost"},
    {P(p_sign_flip), FIELD_NUMBER, NUL, .csv = "p_sign_flip"},
    {P(p_mcnemar), FIELD_NUMBER, NUL, .csv = "p_mcnemar"},
    {P(p_holm), FIELD_NUMBER, NUL | OPT, .csv = "p_holm"},
    {P(p_failed), FIELD_NUMBER, NUL | OPT, .csv = "p_failed",
     .about = "sign-flip test over problems: do the arms differ in the share of failed samples?"},
    {P(p_repaired), FIELD_NUMBER, NUL | OPT, .csv = "p_repaired",
     .about = "the same for repaired samples"},
    {P(discordant), FIELD_RECORD, NUL, .of = &discordant_type},
    {P(length), FIELD_RECORD, NUL, .of = &length_type},
    {P(opinions), FIELD_RECORD, OPT | FIELD_OMITTED, .of = &opinion_difference_type},
    {P(refused), FIELD_TEXT, NUL, .csv = "refused"},
    {P(declared), FIELD_TEXT, OPT | FIELD_OMITTED, .csv = "declared",
     .about = "what the requests of the arms differ in, as --may-differ allows"},
};
#undef P
static const record_rule pair_rules[] = {
    {"verdict", "refused", NULL}, /* a comparison has either a verdict or a reason why it was
                                     refused */
};
const record_type pair_type = {
    .name = "pair", .size = sizeof(pair_record), RECORD_FIELDS(pair_fields),
    .rules = pair_rules, .n_rules = sizeof pair_rules / sizeof *pair_rules};

#define A(member) FIELD_OF(group_arm_record, member)
static const field group_arm_fields[] = {
    {A(name), FIELD_TEXT, FIELD_NAME},
    {A(problems), FIELD_COUNT},
    {A(scored), FIELD_COUNT},
    {A(accuracy_pct), FIELD_NUMBER, PERCENT},
    {A(ci95_pct), FIELD_INTERVAL, NUL},
    {A(prompt_tokens_mean), FIELD_NUMBER, FROM_0},
};
#undef A
static const record_type group_arm_type = {
    .name = "group_arm", .about = "the accuracy of one arm in a group of problems",
    .size = sizeof(group_arm_record), RECORD_FIELDS(group_arm_fields)};

static const field group_fields[] = {
    {FIELD_OF(group_record, by), FIELD_TEXTS, .about = "one or two fields of the task"},
    {FIELD_OF(group_record, at), FIELD_TEXTS, .about = "their values in this group"},
    {FIELD_OF(group_record, problems), FIELD_COUNT},
    {FIELD_OF(group_record, arms), FIELD_RECORDS, .of = &group_arm_type},
    {FIELD_OF(group_record, pairs), FIELD_RECORDS, .of = &pair_type,
     .about = "p_holm is adjusted over the groups with the same fields"},
};
static const record_type group_type = {
    .name = "group",
    .about = "the problems with one value of a field, such as a length of 4096 tokens",
    .size = sizeof(group_record), RECORD_FIELDS(group_fields)};

#define E(member) FIELD_OF(eval_record, member)
static const field eval_fields[] = {
    {E(task), FIELD_TEXT, FIELD_NAME, .csv = "task"},
    {E(title), FIELD_TEXT, NUL | OPT, .csv = "task_title"},
    {E(metric), FIELD_TEXT, OPT,
     .about = "what the accuracies of this row measure, in a task with several metrics; the other "
              "metrics have rows of their own, named task:metric"},
    {E(dataset), FIELD_RECORD, .of = &eval_dataset_type},
    {E(prompt_sha256), FIELD_TEXT, FIELD_SHA256, .csv = "prompt_sha256"},
    {E(grader), FIELD_TEXT, FIELD_NAME, .csv = "grader"},
    {E(task_sha256), FIELD_TEXT, NUL | OPT | FIELD_SHA256, .csv = "task_sha256",
     .about = "SHA-256 of the task file; absent if the task is defined in the program"},
    {E(sampling), FIELD_RECORD, .of = &eval_sampling_type},
    {E(problems), FIELD_COUNT},
    {E(samples_per_problem), FIELD_COUNT},
    {E(turns), FIELD_COUNT, OPT,
     .about = "problems of the longest conversation, if the problems are turns of conversations. "
              "Then each comparison counts conversations as its problems"},
    {E(chance_pct), FIELD_NUMBER, FIELD_PERCENT | OPT, .about = "accuracy of guessing"},
    {E(margin_pp), FIELD_NUMBER, FIELD_ABOVE_0 | OPT,
     .about = "margin of equivalence of the run, which a run of one arm has too"},
    {E(max_lost_pct), FIELD_NUMBER, FIELD_PERCENT | OPT},
    {E(judge), FIELD_RECORD, OPT | FIELD_OMITTED, .of = &judge_type},
    {E(arms), FIELD_RECORDS, .of = &arm_type},
    {E(pairs), FIELD_RECORDS, .of = &pair_type},
    {E(groups), FIELD_RECORDS, OPT, .of = &group_type,
     .about = "results by the fields that the task names, such as length and depth"},
};
#undef E
const record_type eval_type = {
    .name = "eval", .size = sizeof(eval_record), RECORD_FIELDS(eval_fields)};
/* clang-format on */

bool eval_lost_too_many(const eval_record *e, const pair_record *pair, char *why, size_t cap) {
    const arm_record *a = eval_arm_of(e, pair->baseline), *b = eval_arm_of(e, pair->arm);
    double most = isnan(pair->max_lost_pct) ? LOST_MAX_PCT : pair->max_lost_pct;
    why[0] = '\0';
    return a && b &&
           lost_too_many((lost_count){a->name, a->samples, a->scored},
                         (lost_count){b->name, b->samples, b->scored}, most, why, cap);
}

bool eval_is_blind(const eval_record *e, char *why, size_t cap) {
    static const double kAlways = 99.5;
    const arm_record *a = e->arms.n ? &e->arms.at[0] : NULL;
    double chance = isnan(e->chance_pct) ? 0 : e->chance_pct;
    why[0] = '\0';
    if (a && a->accuracy_pct >= kAlways)
        (void)snprintf(why, cap,
                       "arm %.40s has %.1f %%: an arm can lose confidence without losing "
                       "an answer",
                       a->name, a->accuracy_pct);
    else if (a && (a->accuracy_pct <= 0 || a->ci95_pct[0] <= chance))
        (void)snprintf(why, cap,
                       "arm %.40s has %.1f %%, which is not shown to be better than "
                       "guessing (%.1f %%)",
                       a->name, a->accuracy_pct, chance);
    for (size_t i = 0; i < e->pairs.n && !why[0]; i++)
        if (strcmp(e->pairs.at[i].sensitivity, "blind") == 0)
            (void)snprintf(why, cap, "the damaged arm %.40s was not found worse",
                           e->pairs.at[i].arm);
    return why[0] != '\0';
}

double eval_step(const eval_record *e) {
    return 1 / (double)e->samples_per_problem / (double)(e->turns > 1 ? e->turns : 1);
}

const arm_record *eval_arm_of(const eval_record *e, const char *name) {
    for (size_t i = 0; i < e->arms.n; i++)
        if (strcmp(e->arms.at[i].name, name) == 0)
            return &e->arms.at[i];
    return NULL;
}

double arm_pass_of_all(const arm_record *a) {
    return a->pass_at.n > 1 ? a->pass_at.at[a->pass_at.n - 1].pct : (double)NAN;
}

const char *eval_data_mark(const eval_record *e) {
    const char *manifest = e->dataset.manifest;
    return strcmp(manifest, "unverified") == 0 ? "data UNVERIFIED"
           : strcmp(manifest, "differs") == 0  ? "data DIFFER from the manifest"
                                               : "";
}
