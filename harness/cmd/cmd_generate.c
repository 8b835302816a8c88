/* cmd_generate.c - `snapmla generate` */
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/share.h"
#include "generator/local/answer.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/generate_print.h"

static const char *prompt_text, *prompt_file, *system_text;
static bool stats, thinking, no_thinking;
static opt_list stops;
static int64_t max_tokens = 512, cache_mb, threads, top_k;
static local_options model = {.precision = "bf16", .device = "cpu"};
static answer_options answer = {
    .samples = 1, .seed = 1, .sampling = {.temperature = 1, .top_p = 1, .repetition_penalty = 1}};

static const opt options[] = {
    {.type = OPT_GROUP, .help = "What"},
    {OPT_STR, "prompt", 'p', &prompt_text, "TEXT",
     "answer this prompt; the default is each line of standard input", 0, 0},
    {OPT_STR, "file", 'f', &prompt_file, "FILE", "one prompt from a file; - = standard input", 0,
     0},
    {OPT_STR, "system", 0, &system_text, "TEXT", "text of the system message", 0, 0},
    {OPT_STR, "chat-template", 0, &model.chat_template, "NAME",
     "none (continue the plain text), deepseek-v2, deepseek-v3, deepseek-r1, deepseek-v3.1, kimi, "
     "kimi-k2, longcat, chatml, smollm2, glm4; default: the checkpoint's own",
     0, 0},
    {OPT_FLAG, "thinking", 0, &thinking, NULL,
     "the model reasons before it answers: the default of glm4, not of deepseek-v3.1", 0, 0},
    {OPT_FLAG, "no-thinking", 0, &no_thinking, NULL, "the model answers at once", 0, 0},
    {.type = OPT_GROUP, .help = "How"},
    {OPT_STR, "precision", 0, &model.precision, "NAME",
     "of the cache and attention: bf16, fp8, fp32, noPV; or a cache format, by a name that "
     "'snapmla formats' lists or as a .json file: the cache is rounded through it (cpu or cuda)",
     0, 0},
    {OPT_INT, "samples", 'n', &answer.samples, "N",
     "answers to each prompt; a single one is printed while it is generated", 1, 4096},
    {OPT_NUM, "temperature", 't', &answer.sampling.temperature, "T",
     "sampling temperature; 0 = greedy", 0, 100},
    {OPT_NUM, "top-p", 0, &answer.sampling.top_p, "P",
     "sample from the fewest tokens whose probabilities add up to P", 0, 1},
    {OPT_INT, "top-k", 0, &top_k, "K", "sample from the K likeliest tokens; 0 = off", 0, 1e6},
    {OPT_NUM, "min-p", 0, &answer.sampling.min_p, "P",
     "sample from tokens with at least P times the highest probability; 0 = off", 0, 1},
    {OPT_NUM, "repetition-penalty", 0, &answer.sampling.repetition_penalty, "X",
     "factor that lowers the logits of tokens that occurred before; 1 = off", 0, 100},
    {OPT_INT, "max-tokens", 0, &max_tokens, "N", "maximum number of tokens of an answer", 1, 1e6},
    {OPT_LIST, "stop", 0, &stops, "TEXT", "end an answer before this text; repeatable", 0, 0},
    {OPT_INT, "seed", 0, &answer.seed, "N",
     "seed of the sampling; answer i to a prompt uses seed + i", 0, 1e15},
    {.type = OPT_GROUP, .help = "Machine"},
    {OPT_STR, "device", 0, &model.device, "NAME",
     "cpu; cuda: weights, cache and matrix products are on the device; opencl, plugin:PATH: cache "
     "and attention are on the device",
     0, 0},
    {OPT_INT, "context", 0, &model.context, "N",
     "maximum tokens of a sequence; 0 = 32768, or the model's limit if smaller", 0, 1 << 20},
    {OPT_INT, "cache-mb", 0, &cache_mb, "N",
     "size of the cache in MiB; 0 = 4096, or 1/8 of a CUDA device's memory, or less if enough", 0,
     1 << 24},
    {OPT_FLAG, "recompute", 0, &model.recompute, NULL,
     "compute an evicted sequence again, do not swap it to memory; its tokens may change", 0, 0},
    {OPT_INT, "threads", 0, &threads, "N", "CPU threads; 0 = all cores", 0, 1024},
    {OPT_FLAG, "stats", 0, &stats, NULL,
     "print numbers of tokens, times and the batch size to standard error", 0, 0},
    {.type = OPT_END},
};

static snap_status answer_one(local_model *m, const char *text, snap_err *err) {
    snap_status st;
    local_answers all = {0};
    gen_message messages[2] = {{"system", system_text}, {"user", text}};
    bool has_system = system_text != NULL;
    st = local_answer_prompt(m, messages + !has_system, 1 + has_system, &answer, &all, err);
    if (st == SNAP_OK && answer.keep_ids)
        st = print_answers_json(&all, err);
    else if (!answer.keep_ids && (st == SNAP_OK || all.n == 1)) /* also ends the line of a single
                                                                   answer that failed, of which a
                                                                   part may have been printed */
        print_answers(&all);
    if (st == SNAP_OK && stats)
        print_answer_stats(&all);
    local_answers_release(&all);
    return st;
}

/* Each line of standard input that is not empty is a prompt. */
static snap_status answer_lines(local_model *m, snap_err *err) {
    snap_status st = SNAP_OK;
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    while (st == SNAP_OK && (n = getline(&line, &size, stdin)) >= 0) {
        if (n && line[n - 1] == '\n')
            line[n - 1] = '\0';
        if (*line)
            st = answer_one(m, line, err);
    }
    if (st == SNAP_OK && !feof(stdin))
        st = err_set_errno(err, "cannot read standard input");
    free(line);
    return st;
}

/* Sets what the table of options cannot: values in another type or unit, the limit on sequences,
 * what follows from --json, and the flag that cancels an answer. */
static void complete_options(const opt_shared *shared) {
    model.cache_bytes = cache_mb << 20;
    model.sequences = answer.samples < LOCAL_SEQUENCES ? (int)answer.samples : LOCAL_SEQUENCES;
    model.threads = (int)threads;
    model.thinking = thinking ? THINKING_ON : no_thinking ? THINKING_OFF : THINKING_DEFAULT;
    answer.sampling.top_k = (int)top_k;
    answer.max_tokens = (int)max_tokens;
    answer.stop = (stop_strings){.text = stops.items, .n = stops.n};
    answer.keep_ids = shared->json;
    answer.part = shared->json ? NULL : print_part;
    answer.cancel = &cmd_cancelled;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    snap_status st;
    local_model m = {0};
    buf text = {0};
    char *shipped = NULL;
    complete_options(shared);
    if (prompt_text && prompt_file)
        return err_set(err, SNAP_E_USAGE,
                       "--prompt and --file exclude each other: give one of them");
    if (thinking && no_thinking)
        return err_set(err, SNAP_E_USAGE,
                       "--thinking and --no-thinking exclude each other: give one of them");
    if (prompt_file)
        TRY(fs_read(prompt_file, &text, err));
    shipped = share_find(shared->args[0]);
    TRY(local_open(&m, shipped ? shipped : shared->args[0], &model, err));
    TRY(!prompt_text && !prompt_file
            ? answer_lines(&m, err)
            : answer_one(&m, prompt_text ? prompt_text : buf_str(&text), err));
cleanup:
    local_close(&m);
    buf_release(&text);
    free(shipped);
    return st;
}

const opt_command cmd_generate = {
    .name = "generate",
    .summary = "generate answers with a checkpoint, in either precision",
    .synopsis = "[options] DIR",
    .about = "Generates answers with the checkpoint in DIR (config.json, *.safetensors,\n"
             "tokenizer.json): DeepSeek V2, V3 and related models, LongCat-Flash, MiniCPM3,\n"
             "GLM-4.7-Flash, and models with grouped queries that training/grouped.py has\n"
             "rewritten for MLA. The two precisions differ only in the format of the cache and\n"
             "the arithmetic of attention.",
    .examples = "  snapmla generate --prompt 'What is 17 * 23?' DeepSeek-V2-Lite-Chat\n"
                "  snapmla generate --precision fp8 --samples 8 --stats --file question.txt DIR",
    .options = options,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
