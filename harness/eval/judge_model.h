/* judge_model.h - the model of --judge-model, which compares answers: those to open questions
 * (games.h) and mathematical ones that the rules cannot decide (opinions.h). */
#ifndef SNAPMLA_HARNESS_EVAL_JUDGE_MODEL_H
#define SNAPMLA_HARNESS_EVAL_JUDGE_MODEL_H

#include "base/arena.h"
#include "harness/eval/generate.h"
#include "harness/record/eval.h"

typedef struct {
    eval_arm arm;
    const char *name; /* its model or, if none is given, its generator's argument; stored in the
                         rows that it judges */
    gen_sampling sampling;
    char sha256[HASH_HEX]; /* hash of the name, the sampling and the settings of its requests */
} judge_model;

/**
 * judge_model_parse - read the option
 *
 * @text: "GENERATOR[,key=value...]", as for an arm but without a name. The temperature is 0, top_p
 *        1 and max_tokens 16000 unless given; rpm, tpm and seed have no effect
 * @mem:  owns the texts
 *
 * SNAP_E_USAGE for a malformed option; errors of arm_parse(); SNAP_E_NOMEM.
 */
snap_status judge_model_parse(const char *text, const generate_options *opt, arena *mem,
                              judge_model *out, snap_err *err) SNAP_CHECK_RESULT;

/* Checks the form of the option and its secrets (arm_secrets.h), before anything is stored or sent.
 * NULL is allowed. */
snap_status judge_model_check(const char *text, const generate_options *opt,
                              snap_err *err) SNAP_CHECK_RESULT;

/* Errors of arm_secrets_read() and generator_open(). */
snap_status judge_model_open(const judge_model *judge, const generate_options *opt, generator **out,
                             snap_err *err) SNAP_CHECK_RESULT;

/* The request of a cell with the judge's sampling and settings. The caller sets id, sample and
 * messages. */
gen_request judge_model_request(const judge_model *judge, const eval_plan *plan, plan_cell c);

/* ---- the journal: the judge of the run's last session that had one ---- */

snap_status judge_model_record(results_journal *j, const judge_model *judge,
                               snap_err *err) SNAP_CHECK_RESULT;

/* Adds the judge of a shard to the journal @to of the merged run. SNAP_E_USAGE if another shard had
 * another model, sampling or other settings of requests. The hosts may differ: those of the first
 * shard are kept. @shard: the shard's folder, for the message. SNAP_E_NOMEM; errors of
 * results_journal_append(). */
snap_status judge_model_add(results_journal *to, const results_journal *from, const char *shard,
                            snap_err *err) SNAP_CHECK_RESULT;

/* Reads the row. If the journal has none, the row is marked as absent. Returns false when out of
 * memory. */
bool judge_model_find(const results_journal *j, arena *mem, judge_record *out);

#endif
