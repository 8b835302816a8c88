/* cmd_serve.c - `snapmla serve` */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/share.h"
#include "base/text.h"
#include "harness/bench/model_config.h"
#include "harness/cmd/cmd.h"
#include "harness/record/results.h"
#include "harness/serve/serve.h"

static const char *const kDefaultModel = "models/snapmla-10m";

static const char *key_env, *random_config;
static model_shape random_shape;
static int64_t port = 8000, cache_mb, threads, sequences, chunk, max_queue = SERVE_QUEUE,
               max_per_client, max_body = SERVE_BODY;
static local_options model = {.precision = "bf16", .device = "cpu"};
static serve_options server = {.host = "127.0.0.1",
                               .timeout_s = 600,
                               .drain_s = SERVE_DRAIN_S,
                               .receive_s = SERVE_RECEIVE_S,
                               .max_connections = SERVE_CONNECTIONS};

static const opt options[] = {
    {.type = OPT_GROUP, .help = "Model"},
    {OPT_STR, "precision", 0, &model.precision, "NAME",
     "of the cache and attention: bf16, fp8, fp32, noPV; or a cache format, by a name that "
     "'snapmla formats' lists or as a .json file: the cache is rounded through it (CPU only)",
     0, 0},
    {OPT_STR, "chat-template", 0, &model.chat_template, "NAME",
     "none (continue the plain text), deepseek-v2, deepseek-v3, deepseek-r1, deepseek-v3.1, kimi, "
     "kimi-k2, longcat, chatml, smollm2, glm4; default: the checkpoint's own",
     0, 0},
    {OPT_STR, "random-weights", 0, &random_config, "FILE",
     "instead of DIR: config.json of a model, or the name of a file in configs/models; its weights "
     "are random, to measure speed",
     0, 0},
    {OPT_STR, "served-model-name", 0, &server.model, "NAME",
     "name of the model in requests; default: the last part of DIR", 0, 0},
    {.type = OPT_GROUP, .help = "Machine"},
    {OPT_STR, "device", 0, &model.device, "NAME",
     "cpu; cuda: weights, cache and matrix products are on the device; opencl, plugin:PATH: cache "
     "and attention are on the device",
     0, 0},
    {OPT_INT, "context", 0, &model.context, "N",
     "maximum tokens of a sequence; 0 = 32768, or the model's limit if smaller", 0, 1 << 20},
    {OPT_INT, "sequences", 0, &sequences, "N", "most sequences that are decoded at once; 0 = 32", 0,
     4096},
    {OPT_INT, "chunk", 0, &chunk, "N",
     "most tokens of prompts that are computed in one step beside the decoded ones; 0 = 256, or "
     "2048 with --device cuda",
     0, 1 << 18},
    {OPT_INT, "cache-mb", 0, &cache_mb, "N",
     "size of the cache in MiB; 0 = 4096, or 1/8 of a CUDA device's memory, or less if enough", 0,
     1 << 24},
    {OPT_FLAG, "recompute", 0, &model.recompute, NULL,
     "compute an evicted sequence again, do not swap it to memory; its tokens may change", 0, 0},
    {OPT_INT, "threads", 0, &threads, "N", "CPU threads; 0 = all cores", 0, 1024},
    {.type = OPT_GROUP, .help = "Server"},
    {OPT_STR, "host", 0, &server.host, "ADDRESS", "address to listen on; 0.0.0.0 = all of IPv4", 0,
     0},
    {OPT_INT, "port", 0, &port, "N", "port to listen on; 0 = any that is free", 0, 65535},
    {OPT_STR, "api-key-env", 0, &key_env, "VARIABLE",
     "environment variable with a key that clients must send; default: SNAPMLA_SERVE_KEY, if set",
     0, 0},
    {OPT_INT, "max-queue", 0, &max_queue, "N",
     "most sequences that wait; further requests get status 429", 0, 1 << 20},
    {OPT_INT, "max-per-client", 0, &max_per_client, "N",
     "most sequences of one client address that wait or run; further requests get status 429; 0 = "
     "no limit",
     0, 1 << 20},
    {OPT_INT, "max-body", 0, &max_body, "BYTES",
     "largest body of a request; larger ones get status 413", 1024, 1 << 30},
    {OPT_NUM, "timeout", 0, &server.timeout_s, "S",
     "longest time for an answer, in seconds; 0 = no limit", 0, 1e7},
    {OPT_NUM, "drain", 0, &server.drain_s, "S",
     "time for answers in progress after SIGTERM or SIGINT, in seconds", 0, 1e7},
    {.type = OPT_END},
};

/* The last part of a path. Slashes at its end are cut off, and so is ".json" if a configuration
 * with random weights is served. The caller frees it. */
static char *last_part(const char *path) {
    size_t n = strlen(path);
    if (random_config && n > 5 && text_ends(path, ".json"))
        n -= 5;
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t from = n;
    while (from && path[from - 1] != '/')
        from--;
    return strndup(path + from, n - from);
}

static void print_ready(void *ctx, const char *url) {
    const opt_shared *shared = ctx;
    if (shared->json)
        (void)printf("{\"pid\": %lld, \"url\": \"%s/v1\"}\n", (long long)getpid(), url);
    else
        (void)printf("serving %s in %s at %s/v1\n", server.model, model.precision, url);
    (void)fflush(stdout);
}

/* The key is taken from the environment, because other users can read a command line. */
static snap_status read_key(snap_err *err) {
    server.api_key = getenv(key_env ? key_env : "SNAPMLA_SERVE_KEY");
    if (key_env && (!server.api_key || !*server.api_key))
        return err_set(err, SNAP_E_USAGE,
                       "--api-key-env: the environment variable '%.100s' is not set", key_env);
    if (server.api_key && !*server.api_key)
        server.api_key = NULL;
    return SNAP_OK;
}

static void complete_options(void) {
    model.cache_bytes = cache_mb << 20;
    model.sequences = (int)sequences;
    model.chunk = (int)chunk;
    model.threads = (int)threads;
    server.port = (int)port;
    server.max_queue = (int)max_queue;
    server.max_per_client = (int)max_per_client;
    server.max_body = max_body;
    server.version = results_program_version();
    server.cancel = &cmd_cancelled;
    server.ready = print_ready;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    snap_status st;
    local_model m = {0};
    buf template = {0};
    const char *dir = random_config    ? random_config
                      : shared->n_args ? shared->args[0]
                                       : kDefaultModel;
    char *shipped = share_find(dir), *name = last_part(dir);
    complete_options();
    server.ctx = shared;
    TRY(read_key(err));
    if (!name)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for a server"));
    if (!server.model)
        server.model = name;
    if (!server.model || !*server.model || !text_is_utf8(server.model, strlen(server.model)))
        TRY(err_set(err, SNAP_E_USAGE, "--served-model-name: the name must be UTF-8 text"));
    if (random_config && shared->n_args)
        TRY(err_set(err, SNAP_E_USAGE, "--random-weights needs no folder of a checkpoint"));
    if (random_config)
        TRY(model_config_open(&random_shape, random_config, err));
    model.random = random_config ? &random_shape : NULL;
    TRY(local_open(&m, shipped ? shipped : dir, &model, err));
    if (!model.random && !model.chat_template)
        TRY(chat_template_source(shipped ? shipped : dir, &template, err));
    server.chat_template = template.len ? buf_str(&template) : NULL;
    st = serve_run(&m, &server, err);
cleanup:
    local_close(&m);
    buf_release(&template);
    free(shipped);
    free(name);
    return st;
}

const opt_command cmd_serve = {
    .name = "serve",
    .summary = "serve a checkpoint over HTTP with OpenAI's interface",
    .synopsis = "[options] [DIR]",
    .about = "Serves the checkpoint in DIR, or the small model that comes with the program, to\n"
             "clients of OpenAI's HTTP interface: chat completions and completions, whole or\n"
             "streamed. Requests are batched while they run. SIGTERM and SIGINT end the server\n"
             "after the answers in progress.",
    .examples = "  snapmla serve --precision fp8\n"
                "  snapmla serve --precision fp8 --device cuda --port 8001 DeepSeek-V2-Lite-Chat",
    .options = options,
    .min_args = 0,
    .max_args = 1,
    .run = run,
};
