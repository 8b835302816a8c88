/* games.h - the games of Arena-Hard: asks the judge about what the arms have answered. */
#ifndef SNAPMLA_HARNESS_EVAL_GAMES_H
#define SNAPMLA_HARNESS_EVAL_GAMES_H

#include "base/arena.h"
#include "harness/eval/generate.h"

/**
 * games_play - give every answer that needs one its verdict
 *
 * @judge: "GENERATOR[,key=value...]" as an arm has it, without a name; its temperature is 0 and
 *         max_tokens 16000 unless it says otherwise; NULL: none, then rows that have no verdict
 *         stay without
 * @mem:   owns the judge's texts
 *
 * Asks nothing of answers that this judge has seen against the same reference. A row is written
 * when both of its games are over; a game that fails leaves its row without a verdict, to be tried
 * again by the same command. SNAP_E_USAGE for a judge that is malformed; SNAP_E_CANCELLED; what
 * opening a generator gives.
 */
snap_status games_play(const eval_plan *plan, sample_store *store, const char *judge,
                       const generate_options *opt, fs_log *log, arena *mem,
                       snap_err *err) SNAP_CHECK_RESULT;

/* SNAP_E_USAGE where a task needs a judge and none is named: to be known before anything is
 * asked. */
snap_status games_check(const eval_plan *plan, const char *judge, snap_err *err) SNAP_CHECK_RESULT;

#endif
