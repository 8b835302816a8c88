/* engine_cost.c - the processor time that the server's engine thread spends on each token, beside
 * the model.
 *
 *   engine_cost [--streams N] [--tokens N] [--turns N]
 *
 * A tiny model with random weights answers in three ways, in turns: the engine alone with N
 * sequences, one job of the server with N choices, and N jobs with one choice each. The calling
 * thread collects the news as the server's HTTP thread does, and its time is not counted. The
 * program prints the medians in microseconds for each token, and the differences to the engine
 * alone. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "harness/bench/model_config.h"
#include "harness/serve/serve_engine.h"

enum { kPrompt = 16, kTurnsMost = 99, WAYS = 3 };
static const char *const kWays[WAYS] = {"engine alone", "one job", "one job for each stream"};

typedef struct {
    int streams, tokens, turns;
    local_model m;
    int32_t prompt[kPrompt];
} setting;

static void must(snap_status st, const snap_err *err) {
    if (st == SNAP_OK)
        return;
    (void)fprintf(stderr, "engine_cost: %s\n", err->text);
    exit(1);
}

static double seconds(clockid_t clock) {
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Processor time of the other threads of this process. */
static double others(void) {
    return seconds(CLOCK_PROCESS_CPUTIME_ID) - seconds(CLOCK_THREAD_CPUTIME_ID);
}

static engine_request request_of(const setting *s, int i) {
    return (engine_request){.sampling = {.temperature = 1, .top_p = 1, .repetition_penalty = 1},
                            .prompt = s->prompt,
                            .n_prompt = kPrompt,
                            .seed = (uint64_t)i,
                            .max_tokens = s->tokens};
}

/* ---- the engine alone ---- */

static bool take_token(void *user, int32_t token, float logprob) {
    (void)user, (void)token, (void)logprob;
    return true;
}

static void take_end(void *user, finish_reason why) {
    (void)user, (void)why;
}

static double alone(setting *s) {
    snap_err err = {0};
    for (int i = 0; i < s->streams; i++) {
        engine_request r = request_of(s, i);
        r.token = take_token;
        r.done = take_end;
        must(engine_add(s->m.engine, &r, &err), &err);
    }
    double before = seconds(CLOCK_THREAD_CPUTIME_ID);
    while (engine_pending(s->m.engine))
        must(engine_step(s->m.engine, &err), &err);
    return seconds(CLOCK_THREAD_CPUTIME_ID) - before;
}

/* ---- the server's thread ---- */

static double served(setting *s, int jobs) {
    serve_engine *e;
    snap_err err = {0};
    serve_load load;
    uint64_t count;
    int wake = eventfd(0, EFD_CLOEXEC), left = jobs;
    serve_job *job = calloc((size_t)jobs, sizeof *job);
    tok_ids prompt = {s->prompt, kPrompt, kPrompt};
    if (!job || wake < 0)
        exit(1);
    must(serve_engine_start(&e, &s->m, wake, &err), &err);
    double before = others();
    for (int i = 0; i < jobs; i++) {
        job[i] = (serve_job){.prompts = &prompt,
                             .n_prompts = 1,
                             .n = s->streams / jobs,
                             .how = request_of(s, i * (s->streams / jobs))};
        if (!serve_job_prepare(&job[i]))
            exit(1);
        serve_engine_submit(e, &job[i]);
    }
    while (left) {
        if (read(wake, &count, sizeof count) < 0)
            exit(1);
        for (serve_job *j = serve_engine_collect(e, &load); j; j = j->next_news) {
            serve_news_clear(&j->news);
            left -= j->released;
        }
    }
    double spent = others() - before;
    serve_engine_stop(e);
    for (int i = 0; i < jobs; i++)
        serve_job_release(&job[i]);
    free(job);
    (void)close(wake);
    return spent;
}

/* ---- the program ---- */

static int by_number(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static int option(int argc, char **argv, const char *name, int otherwise) {
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return atoi(argv[i + 1]);
    return otherwise;
}

int main(int argc, char **argv) {
    setting s = {.streams = option(argc, argv, "--streams", 256),
                 .tokens = option(argc, argv, "--tokens", 100),
                 .turns = option(argc, argv, "--turns", 5)};
    double time[WAYS][kTurnsMost], median[WAYS];
    model_shape shape;
    snap_err err = {0};
    s.turns = s.turns < kTurnsMost ? s.turns : kTurnsMost;
    must(model_config_open(&shape, "generator/test/model/v2-lite/config.json", &err), &err);
    shape.vocab_size = 640; /* one for each byte, and words */
    shape.max_position_embeddings = 1024;
    shape.num_hidden_layers = 1;
    const local_options how = {.context = 512,
                               .sequences = s.streams,
                               .threads = 1,
                               .cache_bytes = 1 << 28,
                               .random = &shape};
    must(local_open(&s.m, "", &how, &err), &err);
    for (int i = 0; i < kPrompt; i++)
        s.prompt[i] = 5 + i;
    for (int t = 0; t < s.turns; t++) {
        time[0][t] = alone(&s);
        time[1][t] = served(&s, 1);
        time[2][t] = served(&s, s.streams);
    }
    for (int w = 0; w < WAYS; w++) {
        qsort(time[w], (size_t)s.turns, sizeof(double), by_number);
        median[w] = 1e6 * time[w][s.turns / 2] / s.streams / s.tokens;
        printf("%-24s %7.2f us for each token, %+6.2f us (least %.2f)\n", kWays[w], median[w],
               median[w] - median[0], 1e6 * time[w][0] / s.streams / s.tokens);
    }
    local_close(&s.m);
    return 0;
}
