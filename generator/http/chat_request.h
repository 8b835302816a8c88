/* chat_request.h - a request as the JSON body of POST {base}/chat/completions.
 *
 * Source: OpenAI API reference, "Create chat completion". `top_k` is an addition of SGLang, vLLM
 * and llama.cpp; it is sent only when it is set. */
#ifndef SNAPMLA_GENERATOR_HTTP_CHAT_REQUEST_H
#define SNAPMLA_GENERATOR_HTTP_CHAT_REQUEST_H

#include "base/buf.h"
#include "generator/generator.h"

/* Appends the body. @model may be NULL if the server has only one. SNAP_E_NOMEM. */
snap_status chat_request_write(const gen_request *req, const char *model, bool stream, buf *out,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
