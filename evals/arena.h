/* arena.h - Arena-Hard: open questions, judged in pairs by another model.
 *
 * A game shows the judge a question with two answers, A and B, and asks which is better, in five steps from
 * [[A>>B]] to [[B>>A]]. Each answer plays two games against the reference's, once from either side. Where
 * the data has an answer of the set's own baseline model, that is the reference; else the first arm's
 * answer to the same sample is, and that arm plays no games: its win rate is one half.
 *
 * Metric: win_rate, the mean over all battles, of which ">>" counts as three (show_result.py of
 * arena-hard-auto): with a single opponent that is what its Bradley-Terry model gives. Wording, of questions
 * and of games, and which model is whose baseline: the same. */
#ifndef SNAPMLA_EVALS_ARENA_H
#define SNAPMLA_EVALS_ARENA_H

#include "base/buf.h"
#include "evals/plan.h"

enum { ARENA_GAMES = 2 }; /* 0: the reference is A; 1: the reference is B */

/* A judge's last [[..]], or [..], behind its reasoning, as "A>>B" ... "B>>A", "A=B"; NULL where there is none. */
const char *arena_verdict(span judgment);

/* What the answer, not the reference, won: the share of the battles of both games, and how many they are. */
grade_score arena_score(const char *const verdicts[ARENA_GAMES]);

/* The second message of a game; the first is arena_instruction(). SNAP_E_NOMEM. */
snap_status arena_word_game(const task_problem *p, int game, span reference, span answer, buf *out,
                            snap_err *err) SNAP_CHECK_RESULT;
const char *arena_instruction(const task_problem *p);

/* The reference that the data has; NULL where the first arm is it. */
const char *arena_reference(const task_problem *p);

/* ---- rows of samples.jsonl ---- */

/* Whether a row holds the verdict of this judge against this reference. */
bool arena_is_judged(const js *row, const char *judge, span reference);

/* A game as a row keeps it, and both with what follows from them: "verdict" ("correct": it won more than
 * half), "scores", "battles", "judge", "reference_sha256". Without a verdict in both games that is null. */
typedef struct {
    const char *judgment; /* what the judge said; NULL: the request failed */
    const char *error;    /* then why */
} arena_game;
snap_status arena_set_games(js *row, const grader *g, const char *judge, span reference,
                            const arena_game games[ARENA_GAMES], snap_err *err) SNAP_CHECK_RESULT;

/* The first arm's row, where it is the reference. */
snap_status arena_set_reference(js *row, const grader *g, snap_err *err) SNAP_CHECK_RESULT;

/* The result of a row that was judged; false where it has none. */
bool arena_recall(const js *row, grade_result *r);

#endif
