/* games.h - runs the games of Arena-Hard: a judge model compares each answer with a reference. */
#ifndef SNAPMLA_HARNESS_EVAL_GAMES_H
#define SNAPMLA_HARNESS_EVAL_GAMES_H

#include "base/arena.h"
#include "harness/eval/generate.h"

/**
 * games_play - let the judge model give a verdict on every answer that needs one
 *
 * @judge:   the option (judge_model.h). NULL: no judge; rows without a verdict stay so.
 * @journal: receives the judge's settings
 * @mem:     owns the judge's texts
 *
 * Answers that have a verdict of this judge against the same reference are skipped, and so are
 * those whose reference is missing or failed. A row is written when both of its games are over. If
 * a game fails, the row gets no verdict, and the same command tries it again. Where the first arm's
 * answers are the references, they get their verdicts without games (arena.h). SNAP_E_USAGE for a
 * malformed judge; SNAP_E_CANCELLED; SNAP_E_NOMEM; errors of judge_model_open(), generator_run()
 * and the store.
 */
snap_status games_play(const eval_plan *plan, sample_store *store, const char *judge,
                       const generate_options *opt, results_journal *journal, fs_log *log,
                       arena *mem, snap_err *err) SNAP_CHECK_RESULT;

/* Returns SNAP_E_USAGE if a task needs a judge but none is given, unless plan->rejudge is set. Call
 * this function before any request is sent. */
snap_status games_check(const eval_plan *plan, const char *judge, snap_err *err) SNAP_CHECK_RESULT;

#endif
