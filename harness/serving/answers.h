/* answers.h - answers.jsonl: the answers under load to the problems of a task, and whether they are
 * as good in one arm as in another.
 *
 *   {"arm":0,"point":0,"block":1,"index":7,"problem":"2024-I-3","finish_reason":"stop",
 *    "text":"..."}
 *
 * Only answers that came to their end are stored; requests that failed or were cut are only in
 * requests.jsonl. Grading reads the stored answers, so it can be repeated. */
#ifndef SNAPMLA_HARNESS_SERVING_ANSWERS_H
#define SNAPMLA_HARNESS_SERVING_ANSWERS_H

#include "evals/stats.h"
#include "evals/task.h"
#include "generator/http/chat_answer.h"
#include "harness/serving/request.h"

/* Appends the line of an answer. */
void answer_line_append(const serving_request *r, const task_problem *p, const chat_answer *a,
                        buf *out);

/* Two arms at one load point. */
typedef struct {
    int point, arm;                   /* arm 0 is compared with this one */
    size_t answers[2];                /* number of answers of arm 0 and of `arm` */
    double accuracy[2], truncated[2]; /* mean over problems; fraction of the answers; NAN
                                          without answers */
    stats_paired diff;                /* over the problems that both answered */
} parity_row;

/**
 * answers_compare - grade the stored answers and compare the arms at each load point
 *
 * @path:   answers.jsonl
 * @margin: fraction, > 0: the largest difference that counts as equal
 * @out:    [points * (arms - 1)] rows, by point and then by arm
 *
 * SNAP_E_INPUT with file, line and reason for a malformed line or a problem that the task does not
 * have; errors of grade_response(); SNAP_E_IO; SNAP_E_NOMEM.
 */
snap_status answers_compare(const char *path, const task_set *task, int points, int arms,
                            double margin, parity_row *out, snap_err *err) SNAP_CHECK_RESULT;

/* SNAP_E_USAGE if the answers of a task are programs, if their grading needs the verdict of another
 * model, or if the verdicts come with recorded answers. */
snap_status answers_check_task(const task_set *task, snap_err *err) SNAP_CHECK_RESULT;

#endif
