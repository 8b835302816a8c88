/* generate_print.h - the output of `snapmla generate`. */
#ifndef SNAPMLA_HARNESS_CMD_GENERATE_PRINT_H
#define SNAPMLA_HARNESS_CMD_GENERATE_PRINT_H

#include "generator/local/answer.h"

/* Prints the next part of an answer; a callback for answer_options.part. */
void print_part(void *ctx, const char *text, size_t n);

/* One answer: ends the line, because its text was printed by print_part(). Several answers: prints
 * them with their indices. */
void print_answers(const local_answers *all);

/* Prints {"prompt_tokens", "answers": [{"text", "ids", "tokens", "finish_reason"}]} on one line.
 * Takes ownership of the ids. */
snap_status print_answers_json(local_answers *all, snap_err *err) SNAP_CHECK_RESULT;

/* Prints numbers of tokens, times and the batch size to standard error. */
void print_answer_stats(const local_answers *all);

#endif
