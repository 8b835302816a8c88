/* chat_answer.h - the answer to a chat completion request, whole or in stream chunks.
 *
 * Source: OpenAI API reference, "Chat Completions" (objects chat.completion and
 * chat.completion.chunk) and "Completions" (text_completion), and what servers add to them:
 * `reasoning_content`, `reasoning` or `reasoning_details` beside `content`, content as a list of
 * parts, of which those of type "thinking" are reasoning, and an error object in place of a chunk.
 * Only the choice of index 0 is read. Text is valid UTF-8 without NUL bytes (they become U+FFFD).
 *
 * A server may send text that is not Unicode: bytes that are not UTF-8, or half of a surrogate pair
 * as an escape. What it answered is still an answer and is judged as such. Each such byte or escape
 * becomes U+FFFD, and `repaired` is set. */
#ifndef SNAPMLA_GENERATOR_HTTP_CHAT_ANSWER_H
#define SNAPMLA_GENERATOR_HTTP_CHAT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum {
    CHAT_TEXT_LIMIT = 16 << 20
}; /* most bytes of an answer's text, and most bytes of its
                                        reasoning */

typedef struct {
    buf text, reasoning;
    char finish_reason[32];                   /* "" = not received yet */
    int64_t prompt_tokens, completion_tokens; /* -1 = not reported */
    int64_t reasoning_tokens;                 /* as reported; -1 = not reported */
    bool done;                                /* the stream's "[DONE]" was received */
    bool repaired;                            /* U+FFFD replaces something in the JSON */
} chat_answer;

chat_answer chat_answer_make(void); /* no allocation yet */
void chat_answer_clear(chat_answer *a);
void chat_answer_release(chat_answer *a);

/* Whether the answer is complete, which means that it has a finish reason. */
bool chat_answer_complete(const chat_answer *a);

/* Whether the server ended the answer for its own reasons (finish reason "abort" or "error").
 * Then it is not an answer of the model, whatever text came. */
bool chat_answer_aborted(const chat_answer *a);

/* The number of completion tokens that are reasoning; -1 = unknown. A server that reports 0
 * although the answer has reasoning, in a field of its own or in <think> tags, has not counted
 * it. */
int64_t chat_answer_reasoning_tokens(const chat_answer *a);

/**
 * chat_answer_read - read a whole answer from one JSON text
 *
 * SNAP_E_INPUT with the reason when the JSON does not have the form described above; SNAP_E_NET
 * with the server's message when it is an error object; SNAP_E_NOMEM past CHAT_TEXT_LIMIT or if
 * memory is exhausted.
 */
snap_status chat_answer_read(chat_answer *a, const char *json, size_t n,
                             snap_err *err) SNAP_CHECK_RESULT;

/* Reads the next chunk of a stream and appends its delta. "[DONE]" sets `done`; later chunks are
 * ignored. A chunk may be blank, or have no choice of index 0. Errors as in chat_answer_read(). */
snap_status chat_answer_read_chunk(chat_answer *a, const char *data, size_t n,
                                   snap_err *err) SNAP_CHECK_RESULT;

#endif
