#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/hist.h"
#include "base/json.h"
#include "generator/local/engine/stop.h"
#include "generator/local/local.h"
#include "harness/cmd/cmd.h"
#include "harness/share.h"

static const char *prompt_text, *prompt_file, *system_text, *precision = "bf16", *template_name,
                                                            *device = "cpu";
static bool thinking, stats, as_json, recompute;
static opt_list stops;
static int64_t max_tokens = 512, context, cache_mb, threads, samples = 1, seed = 1, top_k;
static double temperature = 1.0, top_p = 1.0, min_p, penalty = 1.0;

static const opt options[] = {
    {.type = OPT_GROUP, .help = "What"},
    {OPT_STR, "prompt", 'p', &prompt_text, "TEXT",
     "one answer; without it and --file each line of standard input is a question", 0, 0},
    {OPT_STR, "file", 'f', &prompt_file, "FILE",
     "the prompt is the file's text; - = standard input", 0, 0},
    {OPT_STR, "system", 0, &system_text, "TEXT", "system message", 0, 0},
    {OPT_STR, "chat-template", 0, &template_name, "NAME",
     "none (plain text goes on), deepseek-v2, deepseek-v3, deepseek-r1, deepseek-v3.1, kimi, "
     "kimi-k2, "
     "longcat, chatml; default: the checkpoint's own",
     0, 0},
    {OPT_FLAG, "thinking", 0, &thinking, NULL, "deepseek-v3.1: the answer begins with a thought", 0,
     0},
    {.type = OPT_GROUP, .help = "How"},
    {OPT_STR, "precision", 0, &precision, "NAME",
     "of the cache and its attention: bf16, fp8; fp32 for debugging; A to F, noPV: damaged", 0, 0},
    {OPT_INT, "samples", 'n', &samples, "N",
     "answers to each prompt, which they share in the cache; streamed when 1", 1, 4096},
    {OPT_NUM, "temperature", 't', &temperature, "T", "0 = greedy", 0, 100},
    {OPT_NUM, "top-p", 0, &top_p, "P", "the fewest tokens that reach this probability", 0, 1},
    {OPT_INT, "top-k", 0, &top_k, "K", "0 = off", 0, 1e6},
    {OPT_NUM, "min-p", 0, &min_p, "P", "a share of the best token's probability; 0 = off", 0, 1},
    {OPT_NUM, "repetition-penalty", 0, &penalty, "X", "1 = off", 0, 100},
    {OPT_INT, "max-tokens", 0, &max_tokens, "N", "of an answer", 1, 1e6},
    {OPT_LIST, "stop", 0, &stops, "TEXT", "ends an answer, which is cut before it; repeatable", 0,
     0},
    {OPT_INT, "seed", 0, &seed, "N", "sample i of a prompt draws from seed + i", 0, 1e15},
    {.type = OPT_GROUP, .help = "Machine"},
    {OPT_STR, "device", 0, &device, "NAME",
     "cpu; cuda: weights, cache and products there; opencl, plugin:PATH: cache and attention there",
     0, 0},
    {OPT_INT, "context", 0, &context, "N", "tokens a sequence; 0 = 32768, or what the model takes",
     0, 1 << 20},
    {OPT_INT, "cache-mb", 0, &cache_mb, "N",
     "MiB of cache; 0 = 4096, or an eighth of a CUDA device, or less where less will do", 0,
     1 << 24},
    {OPT_FLAG, "recompute", 0, &recompute, NULL,
     "a sequence that makes room in the cache is computed again, in place of swapped to memory; "
     "its "
     "tokens may change",
     0, 0},
    {OPT_INT, "threads", 0, &threads, "N", "0 = all cores", 0, 1024},
    {OPT_FLAG, "stats", 0, &stats, NULL, "tokens, times and batch on standard error", 0, 0},
    {.type = OPT_END},
};

/* One answer on its way. */
typedef struct {
    tok_stream stream;
    js *ids; /* with --json */
    buf text;
    bool streams; /* prints as it comes */
    bool stopped; /* by a string of --stop */
    size_t shown; /* bytes of the text */
    int64_t start_ns, first_ns, last_ns, tokens;
    finish_reason why;
    hist *gaps;
} answer;

static stop_strings stop_list(void) {
    return (stop_strings){.text = stops.items, .n = stops.n};
}

/* Prints what of the text is certain and new; @end: all of it. */
static void show(answer *a, bool end) {
    stop_strings stop = stop_list();
    size_t sure = end ? a->text.len : stop_settled(&stop, buf_str(&a->text), a->text.len);
    if (!a->streams || sure <= a->shown)
        return;
    (void)fwrite(a->text.data + a->shown, 1, sure - a->shown, stdout);
    (void)fflush(stdout);
    a->shown = sure;
}

static bool take_token(void *user, int32_t token, float logprob) {
    (void)logprob;
    answer *a = user;
    int64_t now = clock_now_ns();
    if (!a->tokens++)
        a->first_ns = now;
    else
        hist_add(a->gaps, now - a->last_ns);
    a->last_ns = now;
    size_t seen = a->text.len;
    stop_strings stop = stop_list();
    tok_stream_push(&a->stream, token, &a->text);
    if (as_json && !js_push_new(a->ids, js_new_int(token)))
        return false; /* print_json() tells */
    a->stopped = stop_cut(&stop, &a->text, seen);
    if (!a->stopped)
        show(a, false);
    return !a->stopped && !cmd_cancelled;
}

static void take_end(void *user, finish_reason why) {
    answer *a = user;
    a->why = why;
    if (!a->stopped)
        tok_stream_finish(&a->stream, &a->text);
    show(a, true);
    if (a->streams)
        (void)puts("");
}

static snap_status queue(local_model *m, const tok_ids *ids, answer *a, int64_t i, snap_err *err) {
    engine_request req = {.prompt = ids->v,
                          .n_prompt = ids->n < INT32_MAX ? (int)ids->n : INT32_MAX,
                          .sampling = {.temperature = temperature,
                                       .top_p = top_p,
                                       .min_p = min_p,
                                       .repetition_penalty = penalty,
                                       .top_k = (int)top_k},
                          .seed = (uint64_t)(seed + i),
                          .max_tokens = (int)max_tokens,
                          .stop_ids = m->stop_ids,
                          .n_stop_ids = m->n_stop_ids,
                          .token = take_token,
                          .done = take_end,
                          .user = a};
    a->stream = tok_stream_make(m->tokenizer, true);
    a->start_ns = clock_now_ns();
    return engine_add(m->engine, &req, err);
}

static void print_stats(const local_model *m, const answer *a, int64_t prompt, int64_t ns,
                        const hist *gaps) {
    engine_stats s = engine_stats_of(m->engine);
    int64_t tokens = 0;
    for (int64_t i = 0; i < samples; i++)
        tokens += a[i].tokens;
    (void)fprintf(stderr,
                  "prompt %lld tokens, first token after %.0f ms; %lld tokens in %.2f s, %.1f a "
                  "second; gaps p50 %.3f ms, p99 %.3f ms; %.1f sequences a step, %lld preemptions, "
                  "%lld prompt tokens shared\n",
                  (long long)prompt, (double)(a->first_ns - a->start_ns) / 1e6, (long long)tokens,
                  (double)ns / 1e9, (double)tokens / ((double)ns / 1e9),
                  (double)hist_quantile_ns(gaps, 0.5) / 1e6,
                  (double)hist_quantile_ns(gaps, 0.99) / 1e6, s.mean_running,
                  (long long)s.preemptions, (long long)s.shared);
}

/* {"prompt_tokens", "answers": [{"text", "ids", "tokens", "finish_reason"}]}, a line a prompt */
static snap_status print_json(answer *a, int64_t prompt, snap_err *err) {
    buf out = {0};
    js *o = js_new_object(), *list = js_new_array();
    bool ok = o && js_set_int(o, "prompt_tokens", prompt);
    for (int64_t i = 0; i < samples && ok; i++) {
        js *row = js_new_object();
        ok = js_push_new(list, row) && js_set_str(row, "text", buf_str(&a[i].text)) &&
             js_set_int(row, "tokens", a[i].tokens) && (int64_t)js_len(a[i].ids) == a[i].tokens &&
             js_set_new(row, "ids", a[i].ids) &&
             js_set_str(row, "finish_reason", a[i].why == FINISH_STOP ? "stop" : "length");
        a[i].ids = NULL;
    }
    ok = js_set_new(o, "answers", list) && ok;
    snap_status st = ok ? js_write(o, JS_COMPACT, &out, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for the answers");
    if (st == SNAP_OK)
        (void)puts(buf_str(&out));
    js_free(o);
    buf_release(&out);
    return st;
}

static snap_status check_answers(const answer *a, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int64_t i = 0; i < samples && st == SNAP_OK; i++) {
        if (samples > 1 && !as_json)
            (void)printf("%s[%lld] %s\n", i ? "\n" : "", (long long)i, buf_str(&a[i].text));
        st = buf_check(&a[i].text, "an answer", err);
        if (a[i].why == FINISH_NO_PAGES)
            st = err_set(err, SNAP_E_NOMEM,
                         "the cache has too few pages for this sequence: give --cache-mb more");
    }
    return st;
}

/* Answers one prompt, @samples times. */
static snap_status answer_one(local_model *m, const char *text, snap_err *err) {
    snap_status st;
    tok_ids ids = {0};
    arena mem = {0};
    hist gaps = {0};
    gen_message messages[2] = {{"system", system_text}, {"user", text}};
    bool has_system = system_text != NULL;
    answer *a = arena_alloc(&mem, (size_t)samples, sizeof *a);
    if (!a)
        return err_set(err, SNAP_E_NOMEM, "out of memory for answers");
    TRY(local_prompt(m, messages + !has_system, 1 + has_system, &ids, err));
    int64_t start_ns = clock_now_ns();
    for (int64_t i = 0; i < samples; i++) {
        a[i].streams = samples == 1 && !as_json;
        a[i].gaps = &gaps;
        a[i].ids = as_json ? js_new_array() : NULL;
        TRY(queue(m, &ids, &a[i], i, err));
    }
    while (engine_pending(m->engine) && !cmd_cancelled)
        TRY(engine_step(m->engine, err));
    if (cmd_cancelled)
        TRY(err_set(err, SNAP_E_CANCELLED, "cancelled"));
    TRY(check_answers(a, err));
    if (as_json)
        TRY(print_json(a, (int64_t)ids.n, err));
    if (stats)
        print_stats(m, a, (int64_t)ids.n, clock_now_ns() - start_ns, &gaps);
cleanup:
    engine_clear(m->engine);
    for (int64_t i = 0; i < samples; i++) {
        tok_stream_release(&a[i].stream);
        js_free(a[i].ids);
        buf_release(&a[i].text);
    }
    arena_release(&mem);
    tok_ids_release(&ids);
    return st;
}

/* A question a line. */
static snap_status answer_lines(local_model *m, snap_err *err) {
    snap_status st = SNAP_OK;
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    while (st == SNAP_OK && (n = getline(&line, &room, stdin)) >= 0) {
        if (n && line[n - 1] == '\n')
            line[n - 1] = '\0';
        if (*line)
            st = answer_one(m, line, err);
    }
    free(line);
    return st;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    snap_status st;
    local_model m = {0};
    buf text = {0};
    char *shipped = NULL;
    local_options how = {.device = device,
                         .precision = precision,
                         .cache_bytes = cache_mb << 20,
                         .context = context,
                         .sequences = samples < LOCAL_SEQUENCES ? (int)samples : LOCAL_SEQUENCES,
                         .recompute = recompute,
                         .threads = (int)threads,
                         .chat_template = template_name,
                         .thinking = thinking};
    as_json = shared->json;
    if (prompt_text && prompt_file)
        return err_set(err, SNAP_E_USAGE, "--prompt and --file: give one of them");
    if (prompt_file)
        TRY(fs_read(prompt_file, &text, err));
    shipped = share_find(shared->args[0]);
    TRY(local_open(&m, shipped ? shipped : shared->args[0], &how, err));
    if (prompt_text || prompt_file)
        TRY(answer_one(&m, prompt_text ? prompt_text : buf_str(&text), err));
    else
        TRY(answer_lines(&m, err));
cleanup:
    local_close(&m);
    buf_release(&text);
    free(shipped);
    return st;
}

const opt_command cmd_generate = {
    .name = "generate",
    .summary = "answer with a checkpoint, in either precision",
    .synopsis = "[options] DIR",
    .about =
        "Answers with the checkpoint in DIR (config.json, *.safetensors, tokenizer.json): "
        "DeepSeek-V2\n"
        "and V3 with their kin, LongCat-Flash, MiniCPM3. Both precisions share everything but the\n"
        "cache's format and the arithmetic of attention.",
    .examples = "  snapmla generate --prompt 'What is 17 * 23?' DeepSeek-V2-Lite-Chat\n"
                "  snapmla generate --precision fp8 --samples 8 --stats --file question.txt DIR",
    .options = options,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
