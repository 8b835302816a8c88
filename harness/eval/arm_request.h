/* arm_request.h - keys of an arm that shape its requests and are texts or words: body, system,
 * template, api, content, reasoning, server. */
#ifndef SNAPMLA_HARNESS_EVAL_ARM_REQUEST_H
#define SNAPMLA_HARNESS_EVAL_ARM_REQUEST_H

#include "base/arena.h"
#include "evals/plan.h"

/* Whether a key of an arm, or a key of the object "request" of a suite, is one of these. */
bool arm_request_has(const char *key);

/* Writes the names of these keys, and NULL after the last one. */
enum { ARM_REQUEST_KEYS = 7 };
void arm_request_keys(const char *out[ARM_REQUEST_KEYS + 1]);

/* Whether the value of a key is @FILE. */
bool arm_request_names_file(const char *key, const char *value);

/**
 * arm_request_set - set one key
 *
 * @value: body, template: a JSON object. system: a text, or a JSON string. These three also take
 *         @FILE. api: chat or completions. content: text or parts. reasoning: tagged or opened.
 *         server: a text or a JSON string; gen_settings_check() checks that it is known. No text
 *         may be empty
 * @mem:   owns the texts
 * @kept:  appended: the value as it must be stored, with the content of the file in place of @FILE
 * @read:  set to true if a file was read
 *
 * SNAP_E_USAGE for another key, and if the value does not have this form; errors of reading the
 * file; SNAP_E_NOMEM.
 */
snap_status arm_request_set(gen_settings *to, const char *key, const char *value, arena *mem,
                            buf *kept, bool *read, snap_err *err) SNAP_CHECK_RESULT;

/* The number of bytes of the JSON value at the start of @s. It ends with the brace, bracket or
 * quote that closes the first one, or with the text. */
size_t arm_request_json_length(const char *s);

#endif
