#include "harness/cmd/generate_print.h"

#include <stdio.h>

void print_part(void *ctx, const char *text, size_t n) {
    (void)ctx;
    (void)fwrite(text, 1, n, stdout);
    (void)fflush(stdout);
}

void print_answers(const local_answers *all) {
    if (all->n == 1)
        (void)puts("");
    for (int64_t i = 0; i < all->n && all->n > 1; i++)
        (void)printf("%s[%lld] %s\n", i ? "\n" : "", (long long)i, buf_str(&all->all[i].text));
}

snap_status print_answers_json(local_answers *all, snap_err *err) {
    buf out = {0};
    js *o = js_new_object(), *list = js_new_array();
    bool ok = o && js_set_int(o, "prompt_tokens", all->prompt_tokens);
    for (int64_t i = 0; i < all->n && ok; i++) {
        local_answer *a = &all->all[i];
        js *row = js_new_object();
        ok = js_push_new(list, row) && js_set_str(row, "text", buf_str(&a->text)) &&
             js_set_int(row, "tokens", a->tokens) && js_set_new(row, "ids", a->ids) &&
             js_set_str(row, "finish_reason", a->why == FINISH_STOP ? "stop" : "length");
        a->ids = NULL;
    }
    ok = js_set_new(o, "answers", list) && ok;
    snap_status st = ok ? js_write_shown(o, JS_COMPACT, &out, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for the answers");
    if (st == SNAP_OK)
        (void)puts(buf_str(&out));
    js_free(o);
    buf_release(&out);
    return st;
}

void print_answer_stats(const local_answers *all) {
    const engine_stats *s = &all->stats;
    int64_t tokens = 0;
    for (int64_t i = 0; i < all->n; i++)
        tokens += all->all[i].tokens;
    (void)fprintf(stderr,
                  "prompt %lld tokens, first token after %.0f ms; %lld tokens in %.2f s, %.1f per "
                  "second; gaps p50 %.3f ms, p99 %.3f ms; %.1f sequences per step, %lld "
                  "preemptions, %lld prompt tokens shared\n",
                  (long long)all->prompt_tokens,
                  (double)(all->all[0].first_ns - all->all[0].start_ns) / 1e6, (long long)tokens,
                  (double)all->ns / 1e9, (double)tokens / ((double)all->ns / 1e9),
                  (double)hist_quantile_ns(&all->gaps, 0.5) / 1e6,
                  (double)hist_quantile_ns(&all->gaps, 0.99) / 1e6, s->mean_running,
                  (long long)s->preemptions, (long long)s->shared);
}
