/* arena.h - Arena-Hard: open questions whose answers a judge model compares in pairs.
 *
 * In a game, the judge gets a question with two answers, A and B. It says which is better, with one
 * of five labels from [[A>>B]] to [[B>>A]]. Each answer plays two games against the reference
 * answer, once as A and once as B. If the data set has an answer of its own baseline model, that is
 * the reference. Otherwise the reference is the first arm's answer to the same sample; then the
 * first arm plays no games, and its win rate is one half.
 *
 * Metric: win_rate, the mean over all battles. A game is one battle, or three battles if its label
 * has ">>" or "<<" (show_result.py of arena-hard-auto). The wording of questions and games and the
 * choice of the baseline model also follow arena-hard-auto. */
#ifndef SNAPMLA_EVALS_ARENA_H
#define SNAPMLA_EVALS_ARENA_H

#include "base/buf.h"
#include "evals/plan.h"

enum { ARENA_GAMES = 2 }; /* in game 0 the reference is A, in game 1 it is B */

/* The last label in a judge's text after its reasoning: "A>>B", "A>B", "A=B", "B>A" or "B>>A".
 * Small letters and the reversed forms, such as "A<<B", are accepted. Labels in [..] count only if
 * there is none in [[..]]. NULL if there is no label, or if the last one is none of these. */
const char *arena_verdict(span judgment);

/* The answer's share of the battles in both games, and the number of battles. @verdicts come from
 * arena_verdict() and are not NULL. */
grade_score arena_score(const char *const verdicts[ARENA_GAMES]);

/* Writes the user message of a game; arena_instruction() is the system message. SNAP_E_NOMEM. */
snap_status arena_game_prompt(const task_problem *p, int game, span reference, span answer,
                              buf *out, snap_err *err) SNAP_CHECK_RESULT;
const char *arena_instruction(const task_problem *p);

/* The reference in the data set; NULL if the first arm's answer is the reference. */
const char *arena_reference(const task_problem *p);

/* ---- rows of samples.jsonl ---- */

/* True if a row holds a verdict of this judge against this reference. */
bool arena_is_judged(const js *row, const char *judge, span reference);

/* One game as a row stores it. arena_set_games() stores both games, "judge", "reference_sha256",
 * "grader" and "verdict". The verdict is "correct" if the answer won more than half of the battles,
 * else "wrong", or null unless the judge gave a label in both games. What explains the verdict is
 * stored too: "reason", and if there is a verdict, "scores", "battles", "extracted" and "rule". */
typedef struct {
    const char *judgment; /* the judge's text; NULL: the request failed */
    const char *error;    /* why the request failed; NULL: it did not */
} arena_game;
snap_status arena_set_games(js *row, const grader *g, const char *judge, span reference,
                            const arena_game games[ARENA_GAMES], snap_err *err) SNAP_CHECK_RESULT;

/* Sets the result of a row whose answer is itself the reference (first arm): a win rate of one
 * half. */
snap_status arena_set_reference(js *row, const grader *g, snap_err *err) SNAP_CHECK_RESULT;

/* Reads the result from a judged row; false if the row has none. */
bool arena_recall(const js *row, grade_result *r);

#endif
