#include "evals/synth/stream.h"

#include <stdlib.h>

#include "base/rng.h"

/* kBatch: problems per parallel_for(). kRetries: if a held-out problem repeats an earlier one, so
 * many other serial numbers are tried for it. */
enum { kBatch = 512, kRetries = 32 };

typedef struct {
    synth_problem problem;
    buf line;
    snap_err err;
} slot;

typedef struct {
    const synth_plan *plan;
    slot *slots; /* [kBatch] */
    int64_t first;
    uint64_t *seen; /* [room] hash set of params, 0 = unused; NULL: problems may repeat */
    size_t room;
} stream;

static void make_chat(const synth_plan *plan, int64_t i, slot *s) {
    const training_options o = {.kind = plan->kind[i % plan->kinds],
                                .length = plan->length[i / plan->kinds % plan->lengths],
                                .split =
                                    plan->split == SYNTH_TRAIN ? LONGTEXT_TRAIN : LONGTEXT_MEASURE,
                                .questions = plan->questions,
                                .chars_per_token = plan->chars_per_token};
    s->err = (snap_err){0};
    buf_clear(&s->line);
    s->err.code = training_chat(&o, plan->seed, i, &s->line, &s->err);
}

static void make(const synth_plan *plan, int64_t i, int64_t number, slot *s) {
    snap_status st;
    synth_style style = plan->style[i % plan->styles];
    int level = plan->level[i / plan->styles % plan->levels];
    s->err = (snap_err){0};
    buf_clear(&s->line);
    TRY(synth_make(style, level, plan->split, plan->seed, (uint64_t)number, &s->problem, &s->err));
    TRY(synth_write(&s->problem, plan->solutions, &s->line, &s->err));
cleanup:
    s->err.code = st;
}

static void make_slot(void *ctx, int worker, int64_t index) {
    (void)worker;
    const stream *s = ctx;
    int64_t i = s->plan->start + s->first + index;
    if (s->plan->kinds)
        make_chat(s->plan, i, &s->slots[index]);
    else
        make(s->plan, i, i, &s->slots[index]);
}

/* Adds params to the set; false if they were in it. */
static bool is_new(stream *s, const char *params) {
    uint64_t hash = rng_stream_of(params) | 1;
    size_t at = hash % s->room;
    while (s->seen[at] && s->seen[at] != hash)
        at = (at + 1) % s->room;
    bool found = s->seen[at] == hash;
    s->seen[at] = hash;
    return !found;
}

/* Replaces a repeated problem by one with another number, which is larger by a multiple of kFar. */
static snap_status make_distinct(stream *s, int64_t index, snap_err *err) {
    static const int64_t kFar = (int64_t)1 << 40;
    slot *one = &s->slots[index];
    int64_t i = s->plan->start + s->first + index;
    for (int64_t retry = 1; one->err.code == SNAP_OK; retry++) {
        if (is_new(s, buf_str(&one->problem.params)))
            return SNAP_OK;
        if (retry > kRetries)
            return err_set(err, SNAP_E_USAGE,
                           "style %s has fewer held-out problems of level %d than requested",
                           synth_style_name(one->problem.style), one->problem.level);
        make(s->plan, i, i + retry * kFar, one);
    }
    return SNAP_OK;
}

static snap_status write_batch(stream *s, int64_t n, synth_sink sink, void *ctx, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int64_t i = 0; i < n; i++) {
        slot *one = &s->slots[i];
        if (s->seen)
            TRY(make_distinct(s, i, err));
        if (one->err.code != SNAP_OK)
            TRY(err_set(err, one->err.code, "%s", one->err.text));
        TRY(sink(ctx, buf_str(&one->line), one->line.len, err));
    }
cleanup:
    return st;
}

snap_status synth_stream(const synth_plan *plan, parallel *pool, synth_sink sink, void *ctx,
                         snap_err *err) {
    snap_status st = SNAP_OK;
    stream s = {.plan = plan};
    bool listed = plan->kinds ? plan->lengths > 0 : plan->styles && plan->levels;
    if (!listed || plan->start < 0 || plan->count < 0)
        return err_set(err, SNAP_E_USAGE, "a stream of problems needs styles and levels");
    s.slots = calloc(kBatch, sizeof *s.slots);
    if (plan->split == SYNTH_HELDOUT && !plan->kinds) {
        s.room = 2 * (size_t)plan->count + 1;
        s.seen = calloc(s.room, sizeof *s.seen);
    }
    if (!s.slots || (s.room && !s.seen))
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for problems"));
    for (; s.first < plan->count; s.first += kBatch) {
        int64_t n = plan->count - s.first < kBatch ? plan->count - s.first : kBatch;
        parallel_for(pool, n, make_slot, &s);
        TRY(write_batch(&s, n, sink, ctx, err));
    }
cleanup:
    for (int i = 0; s.slots && i < kBatch; i++) {
        synth_release(&s.slots[i].problem);
        buf_release(&s.slots[i].line);
    }
    free(s.slots);
    free(s.seen);
    return st;
}
