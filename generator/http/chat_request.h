/* chat_request.h - the JSON body of a request: POST {base}/chat/completions or {base}/completions.
 *
 * Source: OpenAI API reference, "Create chat completion" and "Create completion". `top_k`, `min_p`
 * and `repetition_penalty` are additions of SGLang, vLLM and others. They and the other penalties
 * are sent only if they have an effect. */
#ifndef SNAPMLA_GENERATOR_HTTP_CHAT_REQUEST_H
#define SNAPMLA_GENERATOR_HTTP_CHAT_REQUEST_H

#include "base/buf.h"
#include "generator/generator.h"

/* Appends the body. @model may be NULL if the server has only one. SNAP_E_NOMEM. */
snap_status chat_request_write(const gen_request *req, const char *model, bool stream, buf *out,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
