/* generator.h - prompts in, completions out: the interface of every generator.
 *
 * A generator pulls requests from a source and pushes each finished one into a sink, in the order
 * in which they finish. http and local keep up to a stated number of requests in flight. So their
 * memory does not grow with the number of requests, an engine with continuous batching can admit
 * requests as pages come free, and a client of a server can keep its connections full.
 *
 *   http     OpenAI-compatible servers: "http://host:port/v1" or https. Several servers can share
 *            the requests: in "http://a/v1|http://b/v1*3" the second gets three times as many
 *   local    a checkpoint's folder, run in this process: "local:DIR"
 *   replay   recorded completions: "replay:FILE"
 *
 * A request that fails for good (after the generator's own retries) is a result with `failed` set.
 * It does not end the run: the caller excludes and counts it. generator_run() fails only when
 * continuing makes no sense (for example: the sink failed, out of memory, cancelled, the API key
 * is refused, no server can be reached). */
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
    int top_k;                                  /* 0 = off */
    double min_p;                               /* 0 = off */
    double presence_penalty, frequency_penalty; /* 0 = off; http only */
    double repetition_penalty;                  /* 0 or 1 = off */
    int max_tokens;                             /* most completion tokens */
    uint64_t seed;                              /* seed of this one sample */
} gen_sampling;

/* Settings of a request beside its messages and sampling. All zero: none is set. */
typedef struct {
    const char *system; /* system message, instead of one that the messages begin with */

    /* http only */
    const char *body;        /* JSON object with further members of the request */
    int64_t thinking_budget; /* most tokens of reasoning; 0 = no limit is sent */
    const char *server;      /* family of servers, which determines the names of some fields */
    bool completions;        /* POST {base}/completions with a text, not /chat/completions */
    const char *prompt; /* how the text is made: a JSON object with texts for the roles "system",
                           "user" and "assistant", in which {content} stands for the message, and
                           "end" for the end of the prompt; NULL: the messages with an empty line
                           between them */
    bool parts;         /* content is sent as a list with one part of type "text" */
    bool opened;        /* the prompt opens the reasoning: an answer without </think>, and without
                           reasoning in a field of its own, is all reasoning */
    bool completion_limit; /* max_tokens is sent as max_completion_tokens */

    /* True if a value (true or false) was given for `completions`, `parts` or `opened`. Generators
     * ignore these three; plan_settings.h needs them to merge the settings of suite and arm. */
    bool has_completions, has_parts, has_opened;
} gen_settings;

/* All pointers are borrowed from the source. They stay valid until the sink has returned. */
typedef struct {
    int64_t id;                 /* the caller's own number for this sample */
    const char *task, *problem; /* replay finds a recording by (task, problem, sample) */
    int sample;                 /* 0 .. repeats-1 */
    const gen_message *messages;
    int n_messages;
    const char *prompt_sha256; /* hash of the messages; NULL = unknown, then replay skips the
                                  comparison */
    gen_sampling sampling;
    const gen_settings *settings; /* NULL = none */
    const char *settings_sha256;  /* hash of gen_settings_json(); NULL = no setting that can change
                                     an answer */
} gen_request;

/* A verdict that a recorded answer came with. NULL where the recording has none. */
typedef struct {
    const char *grader;    /* id of the grader */
    const char *verdict;   /* "correct", "wrong" or "unparsed" */
    const char *extracted; /* the answer that the grader found in the text */
} gen_verdict;

typedef struct {
    bool failed;           /* no attempt succeeded: `error` says why; text may be partial */
    const char *error;     /* NULL unless failed */
    const char *text;      /* the answer, UTF-8; without the reasoning if the server separates it */
    const char *reasoning; /* what the server returned as reasoning_content or reasoning; NULL if
                              nothing */
    const char *finish_reason; /* "stop", "length", the server's own word, or "unknown" (replay);
                                  NULL if failed */
    int64_t prompt_tokens, completion_tokens; /* token counts, as the server reported them or the
                                                 local tokenizer counted them; -1 = unknown */
    int64_t reasoning_tokens; /* those of completion_tokens that are reasoning; -1 = unknown */
    int64_t start_ns;         /* when the first attempt began, CLOCK_MONOTONIC */
    int64_t first_token_ns;   /* time from the last attempt's start to the first token; -1 = not
                               streamed, or no token came */
    int64_t total_ns;         /* duration of the last attempt */
    /* Inter-token latency: the gaps between the pieces of text of a stream, as they arrived.
     * Percentiles are within 1 %. A piece is what the server sends in one event, usually one token.
     * -1 = fewer than two pieces. */
    int64_t itl_mean_ns, itl_p50_ns, itl_p99_ns;
    int attempts;         /* 1 = no retry was needed */
    bool repaired;        /* the server sent text that is not Unicode; U+FFFD replaces it */
    gen_verdict recorded; /* replay: the verdict that the recording has */
} gen_result;

/* What a client did during a run, and the delay that it added to the times it measured. */
typedef struct {
    int64_t transfers;   /* attempts and health checks that have ended */
    int64_t connections; /* opened for the transfers; fewer where connections were reused */
    int64_t outages;     /* how often one of several servers was taken out of service */
    int64_t lag_p99_ns,
        lag_max_ns; /* 99th percentile and maximum of the time from an event (bytes are readable, or
                       a time limit has passed) to its handling; -1 = no event */
} generator_load;

/* Fills *out and returns true, or returns false when there are no more requests. */
typedef bool (*gen_source_fn)(void *ctx, gen_request *out);
/* Takes one finished request. The pointers inside are valid during the call only. */
typedef snap_status (*gen_sink_fn)(void *ctx, const gen_request *req, const gen_result *res,
                                   snap_err *err);

typedef struct generator generator;

/* Options from an arm's `key=value` list and from the command line. NULL or 0 means unset, except
 * for max_retries. */
typedef struct {
    const char *model;   /* http: model name sent to the server; replay: the arm whose rows are
                            read */
    const char *api_key; /* http: bearer token; sent to this generator's servers only; masked in
                            their messages and, if it has at least 8 bytes, in their answers */
    const char *const *headers; /* http: further headers "Name: value"; values are treated like
                                   api_key */
    int n_headers;              /* at most 8 */
    bool no_stream;             /* http: one JSON answer instead of server-sent events */
    int max_retries;   /* http: attempts after the first, for each request; -1 = default (5) */
    double timeout_s;  /* http: seconds without a byte that end an attempt; 0 = default (600) */
    double deadline_s; /* http: seconds after which an attempt ends; 0 = default (14400) */
    double requests_per_minute; /* http: limit over all servers together; 0 = no limit */
    double tokens_per_minute;   /* http: limit of prompt and completion tokens, over all servers
                                   together; 0 = no limit */
    int in_flight;              /* most requests in progress at once; 0 = the generator's default */
    const char *device;         /* local: "cpu" or NULL, "cuda", "cuda:0,1", "opencl",
                                   "plugin:PATH" */
    const char *layout;         /* local: such as "DP2" or "TP2": how replicas of the model and its
                                   parts are placed on GPUs (generator/local/replicas.h); NULL =
                                   one. With DP and without EP, the source and the sink are called
                                   from several threads, one call at a time */
    const char *precision;      /* local: number format of cache and attention: "bf16" (NULL), "fp8"
                                   and others */
    int64_t cache_bytes;        /* local: bytes of the cache of each replica, the same for every
                                   arm; 0 = the default */
    int64_t context;            /* local: longest sequence, tokens; 0 = the default */
    int threads;                /* local: of all replicas together; 0 = all cores */
    const char *chat_template;  /* local: a name of chat.h; NULL = the checkpoint's own */
    const volatile sig_atomic_t *cancel; /* set from a signal handler to stop; may be NULL */
} generator_options;

/**
 * generator_open - open the generator that @spec names
 *
 * @out:  caller owns it, release with generator_close()
 * @spec: "http://..." or "https://...", or several of these separated by '|'; "local:DIR";
 *        "replay:FILE"
 *
 * SNAP_E_USAGE for an unknown spec or an option out of range; any error of opening its files.
 */
snap_status generator_open(generator **out, const char *spec, const generator_options *opt,
                           snap_err *err) SNAP_CHECK_RESULT;
void generator_close(generator *g); /* NULL is allowed */

/* Runs all requests of the source. SNAP_E_CANCELLED when *cancel was set: finished requests have
 * reached the sink, and those in flight are dropped. */
snap_status generator_run(generator *g, gen_source_fn source, void *source_ctx, gen_sink_fn sink,
                          void *sink_ctx, snap_err *err) SNAP_CHECK_RESULT;

/* Statistics of the last run; false if this generator has no client to measure. */
bool generator_load_of(const generator *g, generator_load *out);

#endif
