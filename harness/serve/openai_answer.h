/* openai_answer.h - the answers in OpenAI's HTTP interface: whole JSON answers, server-sent events,
 * and errors. */
#ifndef SNAPMLA_HARNESS_SERVE_OPENAI_ANSWER_H
#define SNAPMLA_HARNESS_SERVE_OPENAI_ANSWER_H

#include "harness/serve/openai_request.h"
#include "harness/serve/serve_engine.h"

typedef struct openai_choice openai_choice;

/* An answer that is being made. */
typedef struct {
    const openai_request *req;
    const serve_job *job;
    const tokenizer *tokens;
    buf head, tail;        /* JSON before the choices; JSON after those of an event */
    openai_choice *choice; /* [prompts * n] */
    int n_choices;
    int64_t prompt_tokens, completion_tokens;
    int64_t cached_tokens; /* how many of prompt_tokens were in the cache */
    bool failed;           /* memory is exhausted, or not_finite */
    bool not_finite;       /* a log-probability is NaN or +inf */
} openai_answer;

/* @number: a part of the answer's id. @model: the name of the model. @req, @job and @tokens are
 * borrowed. SNAP_E_NOMEM. Release with openai_answer_release(), also after a failure. */
snap_status openai_answer_begin(openai_answer *a, const openai_request *req, const serve_job *job,
                                const tokenizer *tokens, uint64_t number, const char *model,
                                snap_err *err) SNAP_CHECK_RESULT;
void openai_answer_release(openai_answer *a);

/* Takes the news of the job: new tokens and ends of choices (serve_engine.h). Those of a stream are
 * appended to @out as events. Once a->failed is set, no further event is written. */
void openai_answer_take(openai_answer *a, const serve_news *news, buf *out);

/* Appends what follows the last news: the whole answer, or the end of the stream. */
void openai_answer_end(openai_answer *a, buf *out);

/* Appends {"error": {...}}, as an event of a stream if @event is set. */
void openai_write_error(const openai_error *e, bool event, buf *out);

/* Appends the @n bytes of UTF-8 at @s as a JSON string. */
void openai_quote(buf *out, const char *s, size_t n);

#endif
