#include "harness/serving/calibrate.h"

enum { kShort = 16, kLong = 272 }; /* words */
static const double kDrainS = 600;

typedef struct {
    int64_t tokens[2];
    const char *name; /* name of the arm */
} probes;

static snap_status take(void *ctx, const serving_request *r, const task_problem *problem,
                        const chat_answer *answer, snap_err *err) {
    probes *p = ctx;
    (void)problem, (void)answer;
    if (r->failed || r->cut)
        return err_set(err, SNAP_E_NET, "arm '%s': a first request failed: %s", p->name,
                       r->failed ? r->error : "no answer in time");
    p->tokens[r->index] = r->prompt_tokens;
    return SNAP_OK;
}

snap_status calibrate_prompts(serving_target *target, http *engine, prompt_maker *m, uint64_t seed,
                              bool *counted, snap_err *err) {
    const int64_t words[2] = {kShort, kLong};
    prompt_maker plain = *m; /* one token for each word, so that lengths count words */
    plain.around = 0;
    plain.tokens_per_word = 1;
    trace_row rows[2];
    for (int i = 0; i < 2; i++)
        rows[i] = (trace_row){
            .input_length = words[i], .output_length = 1, .prefix = -1, .prefix_length = -1};
    trace lengths = {.rows = rows, .n = 2};
    serving_work work = {
        .seed = seed, .turns = 1, .prefixes = 1, .maker = &plain, .trace = &lengths};
    probes p = {.tokens = {-1, -1}, .name = target->name};
    block_options opt = {.work = &work, .engine = engine, .sink = take, .sink_ctx = &p};
    /* no load point has the number -1, so no block of the run has these prompts */
    block_plan plan = {
        .target = target, .point = -1, .load = {.users = 1}, .requests = 2, .drain_s = kDrainS};
    snap_status st = block_run(&plan, 1, &opt, err);
    *counted = p.tokens[0] >= 0 && p.tokens[1] >= 0;
    if (st == SNAP_OK && *counted && !prompt_fit(m, words, p.tokens))
        st = err_set(err, SNAP_E_INPUT,
                     "arm '%s': the server counts %lld tokens for a prompt of %d words and %lld "
                     "for one of %d, so a prompt of stated length cannot be made: use --prompts",
                     target->name, (long long)p.tokens[0], (int)kShort, (long long)p.tokens[1],
                     (int)kLong);
    return st;
}
