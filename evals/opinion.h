/* opinion.h - a model's second opinion about mathematical answers that the rules cannot decide.
 *
 * The rules leave an answer undecided if they neither show that it equals the gold nor that it
 * differs (grade_result.undecided). Such an answer is not correct. A judge model can be asked
 * whether both are the same answer. What it says never changes the verdict. It is counted
 * separately (score.h).
 *
 * A row of samples.jsonl about an undecided answer has "undecided": true and, if the model was
 * asked, "opinion": {"judge", "judge_sha256", "question_sha256", "verdict", "reply", "error"}. The
 * verdict is "same", "different", or null if there is no opinion, because the request failed or the
 * reply does not have the form that opinion_parse() reads. */
#ifndef SNAPMLA_EVALS_OPINION_H
#define SNAPMLA_EVALS_OPINION_H

#include "base/buf.h"
#include "evals/task.h"

typedef enum {
    OPINION_NONE,      /* no opinion */
    OPINION_SAME,      /* the gold and the answer are the same */
    OPINION_DIFFERENT, /* the gold and the answer differ */
} opinion;

/* The system message, and the user message about an answer: the problem, the gold and the answer.
 * SNAP_E_NOMEM. */
const char *opinion_instruction(void);
snap_status opinion_prompt(const task_problem *p, const char *answer, buf *out,
                           snap_err *err) SNAP_CHECK_RESULT;

/* Reads a reply: OPINION_SAME if its first word is YES, or if its last box contains only YES;
 * OPINION_DIFFERENT likewise for NO. The case of the letters does not matter. OPINION_NONE for any
 * other reply, for a first word and a box that contradict each other, and for reasoning without an
 * end. */
opinion opinion_parse(span reply);

/* ---- rows of samples.jsonl ---- */

/* True if the row shows that a judge model was asked about this answer. *out gets its opinion,
 * possibly OPINION_NONE. @judge_sha256: the judge that counts; NULL: any. False also if memory is
 * exhausted. */
bool opinion_find(const js *row, const task_problem *p, const char *answer,
                  const char *judge_sha256, opinion *out);

/* Stores what the judge model replied, or why the request failed. @judge_sha256: hash of the
 * judge's name and settings. SNAP_E_NOMEM. */
typedef struct {
    const char *judge, *judge_sha256;
    const char *reply; /* NULL: the request failed */
    const char *error; /* NULL: it did not */
} opinion_reply;
snap_status opinion_set(js *row, const task_problem *p, const char *answer,
                        const opinion_reply *said, snap_err *err) SNAP_CHECK_RESULT;

#endif
