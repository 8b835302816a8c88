/* generator.h - prompts in, completions out: the interface of every generator.
 *
 * A generator pulls requests from a source and pushes each finished one into a sink, in the
 * order in which they finish, keeping up to a stated number in flight. So a run of any size takes
 * constant memory, a continuously batched engine can admit as pages come free, and a client of a
 * server can keep its connections full.
 *
 *   http     OpenAI-compatible servers: "http://host:port/v1" or https; several serve one arm
 *            together: "http://a/v1|http://b/v1*3", the second with three times the first's share
 *   local    a checkpoint's folder, run here: "local:DIR"
 *   replay   recorded completions: "replay:FILE"
 *
 * A request that fails for good (after the generator's own retries) is a result with `failed` set,
 * not an error of the run: the caller excludes and counts it. generator_run() fails only when
 * going on makes no sense (the sink failed, out of memory, cancelled, the API key is refused). */
#ifndef SNAPMLA_GENERATOR_GENERATOR_H
#define SNAPMLA_GENERATOR_GENERATOR_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct {
    const char *role; /* "system", "user", "assistant" */
    const char *content;
} gen_message;

typedef struct {
    double temperature, top_p;
    int top_k;      /* 0 = off */
    int max_tokens; /* completion tokens at most */
    uint64_t seed;  /* of this one sample */
} gen_sampling;

/* All pointers are borrowed from the source and stay valid until the sink has seen the result. */
typedef struct {
    int64_t id;                 /* the caller's own number for this sample */
    const char *task, *problem; /* replay finds a recording by (task, problem, sample) */
    int sample;                 /* 0 .. repeats-1 */
    const gen_message *messages;
    int n_messages;
    const char *prompt_sha256; /* of the messages; NULL = not known, then replay can't compare */
    gen_sampling sampling;
} gen_request;

typedef struct {
    bool failed;       /* infrastructure: `error` says why; text may be partial */
    const char *error; /* NULL unless failed */
    const char *text;  /* the answer, UTF-8, reasoning not included when the server separates it */
    const char *reasoning;     /* what the server returned as reasoning_content; NULL if nothing */
    const char *finish_reason; /* "stop", "length", or the server's own word; NULL if failed */
    int64_t prompt_tokens, completion_tokens; /* as reported by the server; -1 = unknown */
    int64_t start_ns;                         /* first attempt sent, CLOCK_MONOTONIC */
    int64_t
        first_token_ns; /* from the last attempt's start to its first token; -1 = not streamed */
    int64_t total_ns;   /* from the last attempt's start to its end */
    /* Gaps between the pieces of text of a stream, as they arrived; percentiles within 1 %. A piece is
     * what the server sends at once: mostly one token. -1 = fewer than two pieces. */
    int64_t itl_mean_ns, itl_p50_ns, itl_p99_ns;
    int attempts; /* 1 = no retry was needed */
} gen_result;

/* What a client did to the times that it measured, and how its connections fared. */
typedef struct {
    int64_t transfers;   /* attempts that ended, and health checks */
    int64_t connections; /* opened for them; fewer where they were kept alive */
    int64_t outages;     /* times that one of several endpoints was taken out */
    int64_t lag_p99_ns,
        lag_max_ns; /* from bytes being readable to their handling; -1 = none came */
} generator_load;

/* Fills *out and returns true, or returns false when there are no more requests. */
typedef bool (*gen_source_fn)(void *ctx, gen_request *out);
/* Takes one finished request; pointers inside are valid during the call only. */
typedef snap_status (*gen_sink_fn)(void *ctx, const gen_request *req, const gen_result *res,
                                   snap_err *err);

typedef struct generator generator;

/* Options that an arm's `key=value` list and the command line give; unset = NULL or 0. */
typedef struct {
    const char *model;   /* model name sent to a server */
    const char *api_key; /* http: bearer token, from the environment only; never logged or stored */
    bool no_stream;      /* http: one JSON answer instead of server-sent events */
    int max_retries;     /* http: further attempts a request; -1 = the default (5) */
    double timeout_s;    /* http: silence that ends an attempt; 0 = the default (600) */
    double deadline_s;   /* http: length that ends an attempt; 0 = the default (14400) */
    double requests_per_minute; /* http: of all servers together; 0 = no limit */
    double tokens_per_minute;   /* http: prompts and answers; 0 = no limit */
    int in_flight;              /* requests kept going at once; 0 = the generator's default */
    const char *device;         /* local: "cpu" (NULL), "cuda", "opencl", "plugin:PATH" */
    const char *precision; /* local: of the cache and attention, "bf16" (NULL), "fp8" and others */
    int64_t cache_bytes;   /* local: of the cache; 0 = the default. The same for every arm */
    int64_t context;       /* local: longest sequence, tokens; 0 = the default */
    int threads;           /* local: 0 = all */
    const char *chat_template;           /* local: a name, or NULL for the checkpoint's own */
    const volatile sig_atomic_t *cancel; /* set from a signal handler to stop; may be NULL */
} generator_options;

/**
 * generator_open - the generator that a spec names
 *
 * @out:  caller owns it, release with generator_close()
 * @spec: "http://...", "https://...", several of these with '|' between; "local:DIR", "replay:FILE"
 *
 * SNAP_E_USAGE for an unknown spec; what opening a file can give.
 */
snap_status generator_open(generator **out, const char *spec, const generator_options *opt,
                           snap_err *err) SNAP_CHECK_RESULT;
void generator_close(generator *g); /* NULL is allowed */

/* Runs all requests of the source. SNAP_E_CANCELLED when *cancel was set: finished requests
 * have reached the sink, those in flight are dropped. */
snap_status generator_run(generator *g, gen_source_fn source, void *source_ctx, gen_sink_fn sink,
                          void *sink_ctx, snap_err *err) SNAP_CHECK_RESULT;

/* How the last run went; false where there is no client whose work could count. */
bool generator_load_of(const generator *g, generator_load *out);

/* What the result file says of it: "http", "local", "replay". */
const char *generator_kind(const generator *g);

#endif
