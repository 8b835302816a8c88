/* openai_answer.h - the answers in OpenAI's HTTP interface: whole JSON answers, server-sent events,
 * and errors. */
#ifndef SNAPMLA_HARNESS_SERVE_OPENAI_ANSWER_H
#define SNAPMLA_HARNESS_SERVE_OPENAI_ANSWER_H

#include "harness/serve/openai_request.h"
#include "harness/serve/serve_engine.h"

typedef struct openai_choice openai_choice;

/* An answer while it grows. */
typedef struct {
    const openai_request *req;
    const serve_job *job;
    const tokenizer *tokens;
    buf head, tail;        /* of the event of a stream, around its choices */
    openai_choice *choice; /* [prompts * n] */
    int n_choices;
    int64_t prompt_tokens, completion_tokens;
    int64_t cached_tokens; /* of prompt_tokens: those that were in the cache */
    bool failed;           /* memory is exhausted */
} openai_answer;

/* @number: makes the answer's id. @model: its name. All pointers are borrowed. SNAP_E_NOMEM.
 * Release with openai_answer_release(), also after a failure. */
snap_status openai_answer_begin(openai_answer *a, const openai_request *req, const serve_job *job,
                                const tokenizer *tokens, uint64_t number, const char *model,
                                snap_err *err) SNAP_CHECK_RESULT;
void openai_answer_release(openai_answer *a);

/* Takes all news of the job. With a stream, appends the events to @out. Once a->failed is set, no
 * further event is written. */
void openai_answer_take(openai_answer *a, const serve_news *news, buf *out);

/* Appends what follows the last news: the whole answer, or the end of the stream. */
void openai_answer_end(openai_answer *a, buf *out);

/* Appends {"error": {...}}. As an event of a stream with @event. */
void openai_write_error(const openai_error *e, bool event, buf *out);

/* Appends @s [n], which is UTF-8, as a JSON string. */
void openai_quote(buf *out, const char *s, size_t n);

#endif
