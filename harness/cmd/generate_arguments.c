#include "harness/cmd/generate_arguments.h"

generate_arguments cmd_generate_given = {
    .max_tokens = 512,
    .model = {.precision = "bf16", .device = "cpu"},
    .answer = {.samples = 1,
               .seed = 1,
               .sampling = {.temperature = 1, .top_p = 1, .repetition_penalty = 1}}};

const opt cmd_generate_options[] = {
    {.type = OPT_GROUP, .help = "What"},
    {OPT_STR, "prompt", 'p', &cmd_generate_given.prompt_text, "TEXT",
     "answer this prompt; the default is each line of standard input", 0, 0},
    {OPT_STR, "file", 'f', &cmd_generate_given.prompt_file, "FILE",
     "one prompt from a file; - = standard input", 0, 0},
    {OPT_STR, "system", 0, &cmd_generate_given.system_text, "TEXT", "text of the system message", 0,
     0},
    {OPT_STR, "chat-template", 0, &cmd_generate_given.model.chat_template, "NAME",
     "none (continue the plain text), deepseek-v2, deepseek-v3, deepseek-r1, deepseek-v3.1, kimi, "
     "kimi-k2, longcat, chatml, smollm2, glm4; default: the checkpoint's own",
     0, 0},
    {OPT_FLAG, "thinking", 0, &cmd_generate_given.thinking, NULL,
     "the model reasons before it answers: the default of glm4, not of deepseek-v3.1", 0, 0},
    {OPT_FLAG, "no-thinking", 0, &cmd_generate_given.no_thinking, NULL, "the model answers at once",
     0, 0},
    {.type = OPT_GROUP, .help = "How"},
    {OPT_STR, "precision", 0, &cmd_generate_given.model.precision, "NAME",
     "of the cache and attention: bf16, fp8, fp32, noPV; or a cache format, by a name that "
     "'snapmla formats' lists or as a .json file: the cache is rounded through it (cpu or cuda)",
     0, 0},
    {OPT_INT, "samples", 'n', &cmd_generate_given.answer.samples, "N",
     "answers to each prompt; a single one is printed while it is generated", 1, 4096},
    {OPT_NUM, "temperature", 't', &cmd_generate_given.answer.sampling.temperature, "T",
     "sampling temperature; 0 = greedy", 0, 100},
    {OPT_NUM, "top-p", 0, &cmd_generate_given.answer.sampling.top_p, "P",
     "sample from the fewest tokens whose probabilities add up to P", 0, 1},
    {OPT_INT, "top-k", 0, &cmd_generate_given.top_k, "K",
     "sample from the K likeliest tokens; 0 = off", 0, 1e6},
    {OPT_NUM, "min-p", 0, &cmd_generate_given.answer.sampling.min_p, "P",
     "sample from tokens with at least P times the highest probability; 0 = off", 0, 1},
    {OPT_NUM, "repetition-penalty", 0, &cmd_generate_given.answer.sampling.repetition_penalty, "X",
     "factor that lowers the logits of tokens that occurred before; 1 = off", 0, 100},
    {OPT_INT, "max-tokens", 0, &cmd_generate_given.max_tokens, "N",
     "maximum number of tokens of an answer", 1, 1e6},
    {OPT_LIST, "stop", 0, &cmd_generate_given.stops, "TEXT",
     "end an answer before this text; repeatable", 0, 0},
    {OPT_INT, "seed", 0, &cmd_generate_given.answer.seed, "N",
     "seed of the sampling; answer i to a prompt uses seed + i", 0, 1e15},
    {.type = OPT_GROUP, .help = "Machine"},
    {OPT_STR, "device", 0, &cmd_generate_given.model.device, "NAME",
     "cpu; cuda, or cuda:N for GPU N: weights, cache and matrix products are on the device; "
     "opencl, plugin:PATH: cache and attention are on the device; with --layout, cuda:N,N lists "
     "GPUs",
     0, 0},
    {OPT_STR, "layout", 0, &cmd_generate_given.model.layout, "LAYOUT",
     "DPn: n replicas of the model, each on a GPU of its own or, with --device cpu, with a share "
     "of the threads; TPn: one model that is split over n GPUs, with a process for each (with "
     "--device cpu for tests only); DPm/TPn: m models that are split over n GPUs each; EPn: n "
     "replicas that divide the experts; TPn/EPn and DPm/TPn/EP(m*n): split models that divide the "
     "experts",
     0, 0},
    {OPT_INT, "context", 0, &cmd_generate_given.model.context, "N",
     "maximum tokens of a sequence; 0 = 32768, or the model's limit if smaller", 0, 1 << 20},
    {OPT_INT, "cache-mb", 0, &cmd_generate_given.cache_mb, "N",
     "size of the cache of each replica in MiB; 0 = 4096, or 1/8 of a CUDA device's memory, or "
     "less if enough",
     0, 1 << 24},
    {OPT_FLAG, "recompute", 0, &cmd_generate_given.model.recompute, NULL,
     "compute an evicted sequence again, do not swap it to memory; its tokens may change", 0, 0},
    {OPT_INT, "threads", 0, &cmd_generate_given.threads, "N", "CPU threads; 0 = all cores", 0,
     1024},
    {OPT_FLAG, "stats", 0, &cmd_generate_given.stats, NULL,
     "print numbers of tokens, times and the batch size to standard error", 0, 0},
    {.type = OPT_END},
};
