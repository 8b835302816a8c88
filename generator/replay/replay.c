/* replay.c - recorded completions in place of a model, to judge them again or to run without
 * one. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "generator/backend.h"
#include "generator/replay/recording.h"

typedef struct {
    generator base;
    recording rows;
    char *path;
    const volatile sig_atomic_t *cancel;
} replay;

static gen_result result_of(const recorded *row) {
    return (gen_result){
        .failed = row->error != NULL,
        .error = row->error,
        .text = row->text,
        .reasoning = row->reasoning,
        .finish_reason = row->error ? NULL : row->finish_reason,
        .prompt_tokens = row->prompt_tokens,
        .completion_tokens = row->completion_tokens,
        .reasoning_tokens = row->reasoning_tokens,
        .start_ns = clock_now_ns(),
        .first_token_ns = row->first_token_ns,
        .total_ns = row->total_ns,
        .itl_mean_ns = row->itl_mean_ns,
        .itl_p50_ns = row->itl_p50_ns,
        .itl_p99_ns = row->itl_p99_ns,
        .attempts = 1,
        .repaired = row->repaired,
        .recorded = row->verdict,
    };
}

static snap_status answer(const replay *r, const gen_request *req, gen_sink_fn sink, void *ctx,
                          snap_err *err) {
    const recorded *row = recording_find(&r->rows, req->task, req->problem, req->sample);
    char differs[120];
    if (row && !row->error && recording_mismatch(row, req, differs, sizeof differs))
        return err_set(err, SNAP_E_USAGE, "%s:%ld: recorded with %s: not an answer to this request",
                       r->path, row->line, differs);
    if (row) {
        gen_result res = result_of(row);
        return sink(ctx, req, &res, err);
    }
    buf why = {0};
    (void)buf_printf(&why, "no recording of task '%s', problem '%s', sample %d", req->task,
                     req->problem, req->sample);
    recorded none = {.text = "",
                     .error = buf_str(&why),
                     .prompt_tokens = -1,
                     .completion_tokens = -1,
                     .reasoning_tokens = -1,
                     .first_token_ns = -1,
                     .itl_mean_ns = -1,
                     .itl_p50_ns = -1,
                     .itl_p99_ns = -1};
    gen_result res = result_of(&none);
    snap_status st = sink(ctx, req, &res, err);
    buf_release(&why);
    return st;
}

static snap_status replay_run(generator *g, gen_source_fn source, void *source_ctx,
                              gen_sink_fn sink, void *sink_ctx, snap_err *err) {
    const replay *r = (const replay *)(const void *)g;
    snap_status st = SNAP_OK;
    gen_request req;
    while (st == SNAP_OK && source(source_ctx, &req)) {
        if (r->cancel && *r->cancel)
            st = err_set(err, SNAP_E_CANCELLED, "cancelled");
        else
            st = answer(r, &req, sink, sink_ctx, err);
    }
    return st;
}

static void replay_close(generator *g) {
    replay *r = (replay *)(void *)g;
    recording_release(&r->rows);
    free(r->path);
    free(r);
}

static const generator_ops replay_ops = {.run = replay_run, .close = replay_close};

/* Whether a file looks like a log of lm-evaluation-harness (JSON lines with "resps"), Inspect (a
 * zip archive, or one JSON object with "eval") or lighteval (Parquet). */
static bool is_foreign_log(const buf *text) {
    enum { kHead = 4096 };
    const char *s = buf_str(text), *end = memchr(s, '\n', text->len);
    size_t head = text->len < kHead ? text->len : kHead;
    if (text_starts(s, "PAR1") || text_starts(s, "PK\3\4"))
        return true;
    if (*s != '{')
        return false;
    js *first = js_parse(s, end ? (size_t)(end - s) : text->len, "a log", NULL);
    bool is = first ? !js_has(first, "task") && (js_has(first, "resps") || js_has(first, "eval"))
                    : memmem(s, head, "\"eval\":", strlen("\"eval\":")) != NULL;
    js_free(first);
    return is;
}

snap_status gen_replay_open(generator **out, const char *spec, const generator_options *opt,
                            snap_err *err) {
    *out = NULL;
    const char *path = spec + sizeof "replay:" - 1;
    snap_status st = SNAP_OK;
    buf text = {0};
    replay *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a generator");
    r->base.ops = &replay_ops;
    r->cancel = opt->cancel;
    r->path = strdup(path);
    if (!r->path)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for a generator"));
    TRY(fs_read(path, &text, err));
    if (is_foreign_log(&text))
        TRY(err_set(err, SNAP_E_USAGE,
                    "%s is a log of another program, not a recording: make one with 'snapmla eval "
                    "import'",
                    path));
    TRY(recording_read(&r->rows, buf_str(&text), text.len, path, opt->model, err));
    *out = &r->base;
    r = NULL;
cleanup:
    buf_release(&text);
    if (r)
        replay_close(&r->base);
    return st;
}
