#include "harness/cmd/serve_arguments.h"

serve_arguments cmd_serve_given = {.port = 8000,
                                   .max_queue = SERVE_QUEUE,
                                   .max_body = SERVE_BODY,
                                   .model = {.precision = "bf16", .device = "cpu"},
                                   .server = {.host = "127.0.0.1",
                                              .timeout_s = 600,
                                              .drain_s = SERVE_DRAIN_S,
                                              .receive_s = SERVE_RECEIVE_S,
                                              .max_connections = SERVE_CONNECTIONS}};

const opt cmd_serve_options[] = {
    {.type = OPT_GROUP, .help = "Model"},
    {OPT_STR, "precision", 0, &cmd_serve_given.model.precision, "NAME",
     "of the cache and attention: bf16, fp8, fp32, noPV; or a cache format, by a name that "
     "'snapmla formats' lists or as a .json file: the cache is rounded through it (cpu or cuda)",
     0, 0},
    {OPT_STR, "chat-template", 0, &cmd_serve_given.model.chat_template, "NAME",
     "none (continue the plain text), deepseek-v2, deepseek-v3, deepseek-r1, deepseek-v3.1, kimi, "
     "kimi-k2, longcat, chatml, smollm2, glm4; default: the checkpoint's own",
     0, 0},
    {OPT_STR, "random-weights", 0, &cmd_serve_given.random_config, "FILE",
     "instead of DIR: config.json of a model, or the name of a file in configs/models; its weights "
     "are random, to measure speed",
     0, 0},
    {OPT_STR, "served-model-name", 0, &cmd_serve_given.server.model, "NAME",
     "name of the model in requests; default: the last part of DIR", 0, 0},
    {.type = OPT_GROUP, .help = "Machine"},
    {OPT_STR, "device", 0, &cmd_serve_given.model.device, "NAME",
     "cpu; cuda, or cuda:N for GPU N: weights, cache and matrix products are on the device; "
     "opencl, plugin:PATH: cache and attention are on the device; with --layout, cuda:N,N lists "
     "GPUs",
     0, 0},
    {OPT_STR, "layout", 0, &cmd_serve_given.model.layout, "LAYOUT",
     "DPn: n replicas of the model, each on a GPU of its own or, with --device cpu, with a share "
     "of the threads; TPn: one model that is split over n GPUs, with a process for each (with "
     "--device cpu for tests only); DPm/TPn: m models that are split over n GPUs each; EPn: n "
     "replicas that divide the experts; TPn/EPn and DPm/TPn/EP(m*n): split models that divide the "
     "experts",
     0, 0},
    {OPT_INT, "context", 0, &cmd_serve_given.model.context, "N",
     "maximum tokens of a sequence; 0 = 32768, or the model's limit if smaller", 0, 1 << 20},
    {OPT_INT, "sequences", 0, &cmd_serve_given.sequences, "N",
     "most sequences that each replica decodes at once; 0 = 32", 0, 4096},
    {OPT_INT, "chunk", 0, &cmd_serve_given.chunk, "N",
     "most tokens of prompts that are computed in one step beside the decoded ones; 0 = 256, or "
     "2048 with --device cuda",
     0, 1 << 18},
    {OPT_INT, "cache-mb", 0, &cmd_serve_given.cache_mb, "N",
     "size of the cache of each replica in MiB; 0 = 4096, or 1/8 of a CUDA device's memory, or "
     "less if enough",
     0, 1 << 24},
    {OPT_FLAG, "recompute", 0, &cmd_serve_given.model.recompute, NULL,
     "compute an evicted sequence again, do not swap it to memory; its tokens may change", 0, 0},
    {OPT_INT, "threads", 0, &cmd_serve_given.threads, "N", "CPU threads; 0 = all cores", 0, 1024},
    {.type = OPT_GROUP, .help = "Server"},
    {OPT_STR, "host", 0, &cmd_serve_given.server.host, "ADDRESS",
     "address to listen on; 0.0.0.0 = all of IPv4", 0, 0},
    {OPT_INT, "port", 0, &cmd_serve_given.port, "N", "port to listen on; 0 = any that is free", 0,
     65535},
    {OPT_STR, "api-key-env", 0, &cmd_serve_given.key_env, "VARIABLE",
     "environment variable with a key that clients must send; default: SNAPMLA_SERVE_KEY, if set",
     0, 0},
    {OPT_INT, "max-queue", 0, &cmd_serve_given.max_queue, "N",
     "most sequences that wait; further requests get status 429", 0, 1 << 20},
    {OPT_INT, "max-per-client", 0, &cmd_serve_given.max_per_client, "N",
     "most sequences of one client address that wait or run; further requests get status 429; 0 = "
     "no limit",
     0, 1 << 20},
    {OPT_INT, "max-body", 0, &cmd_serve_given.max_body, "BYTES",
     "largest body of a request; larger ones get status 413", 1024, 1 << 30},
    {OPT_NUM, "timeout", 0, &cmd_serve_given.server.timeout_s, "S",
     "longest time for an answer, in seconds; 0 = no limit", 0, 1e7},
    {OPT_NUM, "drain", 0, &cmd_serve_given.server.drain_s, "S",
     "time for answers in progress after SIGTERM or SIGINT, in seconds", 0, 1e7},
    {.type = OPT_END},
};
