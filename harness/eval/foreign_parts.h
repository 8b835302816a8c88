/* foreign_parts.h - what the readers of foreign logs share (foreign_log.h). */
#ifndef SNAPMLA_HARNESS_EVAL_FOREIGN_PARTS_H
#define SNAPMLA_HARNESS_EVAL_FOREIGN_PARTS_H

#include "harness/eval/foreign_log.h"

/* Each function reads one format. out->rows must be an empty array. */
snap_status lm_eval_parse(foreign_log *out, const char *text, size_t n, const char *name,
                          snap_err *err) SNAP_CHECK_RESULT;
snap_status inspect_parse(foreign_log *out, const char *bytes, size_t n, bool packed,
                          const char *name, snap_err *err) SNAP_CHECK_RESULT;
snap_status lighteval_parse(foreign_log *out, const char *bytes, size_t n, const char *name,
                            snap_err *err) SNAP_CHECK_RESULT;

/* Sets log->task to a name that a task can have. */
void foreign_set_task(foreign_log *log, const char *name, size_t n);

/* Takes the task from the name of a file, PREFIX_TASK_DATE.EXTENSION; the date has no '_'. */
void foreign_take_task(foreign_log *log, const char *path, const char *prefix);

/* Appends a text; a number, a list or an object as JSON; nothing for NULL and null. */
snap_status foreign_text(const js *value, buf *out, snap_err *err) SNAP_CHECK_RESULT;

/* Sets a member of a row to foreign_text() without NULs. Does nothing if @value is NULL or null. */
snap_status foreign_set(js *row, const char *key, const js *value, snap_err *err) SNAP_CHECK_RESULT;
snap_status foreign_set_buf(js *row, const char *key, const buf *text,
                            snap_err *err) SNAP_CHECK_RESULT;

/* Appends the text of a message's "content". */
typedef snap_status (*foreign_text_fn)(void *ctx, const js *content, buf *out, snap_err *err);

/**
 * foreign_set_messages - set "prompt" of a row from the messages of a conversation
 *
 * @messages: [n] of the array are used
 *
 * If there are several messages, each begins with its role: "system: Add.\n\nuser: 1 + 2".
 */
snap_status foreign_set_messages(js *row, const js *messages, size_t n, foreign_text_fn text_of,
                                 void *ctx, snap_err *err) SNAP_CHECK_RESULT;

#endif
