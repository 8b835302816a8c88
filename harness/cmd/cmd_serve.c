/* cmd_serve.c - `snapmla serve` */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/share.h"
#include "base/text.h"
#include "harness/bench/model_config.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/serve_arguments.h"
#include "harness/record/results.h"

static const char *const kDefaultModel = "models/snapmla-10m";

static model_shape random_shape; /* of --random-weights */

/* The last part of a path. Slashes at its end are cut off, and so is ".json" if a configuration
 * with random weights is served. The caller frees it. */
static char *last_part(const char *path, bool is_config) {
    size_t n = strlen(path);
    if (is_config && n > 5 && text_ends(path, ".json"))
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
        (void)printf("serving %s in %s at %s/v1\n", cmd_serve_given.server.model,
                     cmd_serve_given.model.precision, url);
    (void)fflush(stdout);
}

/* The key is taken from the environment, because other users can read a command line. */
static snap_status read_key(serve_options *server, const char *key_env, snap_err *err) {
    server->api_key = getenv(key_env ? key_env : "SNAPMLA_SERVE_KEY");
    if (key_env && (!server->api_key || !*server->api_key))
        return err_set(err, SNAP_E_USAGE,
                       "--api-key-env: the environment variable '%.100s' is not set", key_env);
    if (server->api_key && !*server->api_key)
        server->api_key = NULL;
    return SNAP_OK;
}

static void complete_options(serve_arguments *a) {
    a->model.cache_bytes = a->cache_mb << 20;
    a->model.sequences = (int)a->sequences;
    a->model.chunk = (int)a->chunk;
    a->model.threads = (int)a->threads;
    a->server.port = (int)a->port;
    a->server.max_queue = (int)a->max_queue;
    a->server.max_per_client = (int)a->max_per_client;
    a->server.max_body = a->max_body;
    a->server.version = results_program_version();
    a->server.cancel = &cmd_cancelled;
    a->server.ready = print_ready;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    serve_arguments *a = &cmd_serve_given;
    snap_status st;
    local_model m = {0};
    buf template = {0};
    const char *dir = a->random_config ? a->random_config
                      : shared->n_args ? shared->args[0]
                                       : kDefaultModel;
    char *shipped = share_find(dir), *name = last_part(dir, a->random_config != NULL);
    complete_options(a);
    a->server.ctx = shared;
    TRY(read_key(&a->server, a->key_env, err));
    if (!name)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for a server"));
    if (!a->server.model)
        a->server.model = name;
    if (!a->server.model || !*a->server.model ||
        !text_is_utf8(a->server.model, strlen(a->server.model)))
        TRY(err_set(err, SNAP_E_USAGE, "--served-model-name: the name must be UTF-8 text"));
    if (a->random_config && shared->n_args)
        TRY(err_set(err, SNAP_E_USAGE, "--random-weights needs no folder of a checkpoint"));
    if (a->random_config)
        TRY(model_config_open(&random_shape, a->random_config, err));
    a->model.random = a->random_config ? &random_shape : NULL;
    TRY(local_open(&m, shipped ? shipped : dir, &a->model, err));
    if (!a->model.random && !a->model.chat_template)
        TRY(chat_template_source(shipped ? shipped : dir, &template, err));
    a->server.chat_template = template.len ? buf_str(&template) : NULL;
    st = serve_run(&m, &a->server, err);
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
    .options = cmd_serve_options,
    .min_args = 0,
    .max_args = 1,
    .run = run,
};
