/* serve_arguments.h - the options of `snapmla serve` and their values */
#ifndef SNAPMLA_HARNESS_CMD_SERVE_ARGUMENTS_H
#define SNAPMLA_HARNESS_CMD_SERVE_ARGUMENTS_H

#include "harness/opt.h"
#include "harness/serve/serve.h"

/* The parser fills all members but @model and @server. The command then sets these from the others.
 */
typedef struct {
    const char *key_env, *random_config;
    int64_t port, cache_mb, threads, sequences, chunk, max_queue, max_per_client, max_body;
    local_options model;
    serve_options server;
} serve_arguments;

extern serve_arguments cmd_serve_given; /* the parser of options writes the values here */
extern const opt cmd_serve_options[];

#endif
