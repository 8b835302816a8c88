/* openai_request.h - the body of a request in OpenAI's HTTP interface: read, checked, with
 * defaults.
 *
 * Unknown members are ignored. A parameter of openai_request with a wrong type or a value out of
 * range is an error. So is a request for what this server does not support, such as tools. JSON
 * null counts as absent. */
#ifndef SNAPMLA_HARNESS_SERVE_OPENAI_REQUEST_H
#define SNAPMLA_HARNESS_SERVE_OPENAI_REQUEST_H

#include "base/arena.h"
#include "base/json.h"
#include "generator/generator.h"
#include "generator/local/engine/sampler.h"
#include "generator/local/engine/stop.h"

typedef enum {
    OPENAI_CHAT,       /* POST /v1/chat/completions */
    OPENAI_COMPLETION, /* POST /v1/completions */
    OPENAI_TOKENIZE,   /* POST /tokenize: `messages`, or one prompt in `prompt` */
    OPENAI_DETOKENIZE, /* POST /detokenize: ids in `tokens`, which become a prompt */
    OPENAI_KINDS,
} openai_kind;

enum {
    OPENAI_STOPS = 16,     /* most stop strings */
    OPENAI_CHOICES = 4096, /* most choices of a request: prompts times n */
    OPENAI_TOP = 20,       /* largest number of likeliest tokens at a position */
};

/* An error in the form that a client receives: {"error": {...}} with an HTTP status. */
typedef struct {
    int status;        /* 400 .. 504 */
    const char *type;  /* such as "invalid_request_error" */
    const char *param; /* the member that is wrong; NULL = none */
    const char *code;  /* such as "context_length_exceeded"; NULL = none */
    char message[400];
} openai_error;

/* A prompt: a text, or token ids. */
typedef struct {
    const char *text; /* NULL: ids */
    size_t n;         /* bytes or ids */
    int32_t *ids;
} openai_prompt;

/* The pointers refer to `body`, `mem` or constants, but stop.text to this struct, so it must not be
 * copied. */
typedef struct {
    openai_kind kind;
    js *body;
    arena mem;
    const char *model; /* NULL = not named */

    gen_message *messages; /* chat, and tokenize without `prompts`; developer becomes system */
    int n_messages;
    int thinking; /* chat_template_kwargs.thinking or enable_thinking: 0, 1; -1 = absent */
    openai_prompt *prompts; /* completions, and tokenize with `prompt` */
    int n_prompts;          /* 1 for chat */
    bool no_specials;       /* add_special_tokens is false: prompts are encoded without them */

    sampling sampling;
    bool has_seed;
    uint64_t seed;
    int64_t max_tokens; /* -1 = as many as the context allows */
    int64_t min_tokens;
    bool ignore_eos;
    stop_strings stop;
    const char *stops[OPENAI_STOPS];
    int n; /* choices for each prompt */
    bool logprobs;
    int top_logprobs; /* 0 .. OPENAI_TOP */
    bool echo;
    bool stream, include_usage;
    bool continuous_usage; /* each event has the usage so far */
} openai_request;

/* Reads @text. False: *e says why; the status is 400, or 503 if memory is exhausted. Release with
 * openai_request_release(), also after a failure. */
bool openai_request_read(openai_request *r, openai_kind kind, const char *text, size_t n,
                         openai_error *e);
void openai_request_release(openai_request *r);

/* Frees the messages and the JSON of token ids, once the prompts are encoded. */
void openai_request_shrink(openai_request *r);

/* Fills *e; returns false. @param and @code may be NULL. */
bool openai_fail(openai_error *e, int status, const char *param, const char *code, const char *fmt,
                 ...) SNAP_PRINTF(5, 6);

#endif
