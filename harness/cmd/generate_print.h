/* generate_print.h - what `snapmla generate` prints. */
#ifndef SNAPMLA_HARNESS_CMD_GENERATE_PRINT_H
#define SNAPMLA_HARNESS_CMD_GENERATE_PRINT_H

#include "generator/local/answer.h"

/* Prints a part of an answer as it comes: answer_options.part. */
void print_part(void *ctx, const char *text, size_t n);

/* Ends an answer that was printed in parts, or prints several, numbered. */
void print_answers(const local_answers *all);

/* {"prompt_tokens", "answers": [{"text", "ids", "tokens", "finish_reason"}]}, on one line. Takes
 * the ids. */
snap_status print_answers_json(local_answers *all, snap_err *err) SNAP_CHECK_RESULT;

/* Tokens, times and batch on standard error. */
void print_answer_stats(const local_answers *all);

#endif
