#include "harness/serving/work.h"

#include <math.h>
#include <stdio.h>

#include "base/rng.h"

static uint64_t stream(const char *what, int point, int block) {
    char name[80];
    (void)snprintf(name, sizeof name, "serving %s %d/%d", what, point, block);
    return rng_stream_of(name);
}

/* Where a block begins in a list of @n. The multiples of the golden ratio keep their distance from
 * each other, however many blocks there are. */
static int64_t start_of(int block, size_t n) {
    double turns = block * 0.61803398874989484820;
    return (int64_t)((turns - floor(turns)) * (double)n);
}

work_block work_block_make(const serving_work *work, int point, int block, int64_t users) {
    return (work_block){.work = work,
                        .input = stream("input", point, block),
                        .output = stream("output", point, block),
                        .think = stream("think", point, block),
                        .prefix = stream("prefix", point, block),
                        .text = stream("text", point, block),
                        .sampling = stream("sampling", point, block),
                        .users = users,
                        .first_problem = work->task ? start_of(block, work->task->n) : 0};
}

/* A random number of a stream, as a function of the index. */
static uint64_t number(const work_block *b, uint64_t from, uint64_t index) {
    rng r = rng_make(b->work->seed, from);
    r.counter = index;
    return rng_u64(&r);
}

static const trace_row *row_of(const work_block *b, int64_t index) {
    const trace *t = b->work->trace;
    return t ? &t->rows[(size_t)(index / b->work->turns) % t->n] : NULL;
}

int64_t work_input(const work_block *b, int64_t index) {
    const trace_row *row = row_of(b, index);
    if (b->work->task)
        return -1;
    return row ? row->input_length
               : draw_length(&b->work->input, b->work->seed, b->input, (uint64_t)index);
}

int64_t work_output(const work_block *b, int64_t index) {
    const trace_row *row = row_of(b, index);
    if (b->work->has_output)
        return draw_length(&b->work->output, b->work->seed, b->output, (uint64_t)index);
    return row && !b->work->task ? row->output_length : -1;
}

double work_think_s(const work_block *b, int64_t index) {
    return draw_at(&b->work->think, b->work->seed, b->think, (uint64_t)index);
}

uint64_t work_sampling_seed(const work_block *b, int64_t index) {
    return number(b, b->sampling, (uint64_t)index) & 0x7fffffff;
}

const task_problem *work_problem(const work_block *b, int64_t index) {
    const task_set *task = b->work->task;
    return task ? &task->problems[(size_t)(b->first_problem + index) % task->n] : NULL;
}

/* ---- prompts ---- */

/* The seed of a text that several requests share: it does not depend on the block. */
static uint64_t shared_seed(const work_block *b, const char *what, uint64_t id) {
    rng r = rng_make(b->work->seed, rng_stream_of(what));
    r.counter = id;
    return rng_u64(&r);
}

/* Appends the segments of a trace's hash ids. Returns how many of the @words are left. */
static int64_t put_hashed(const work_block *b, const trace_row *row, int64_t words, buf *out) {
    int64_t in_block = prompt_part_words(b->work->maker, TRACE_BLOCK);
    for (size_t i = 0; i < row->n_hash_ids && words > 0; i++) {
        int64_t n = words < in_block ? words : in_block;
        uint64_t seed = shared_seed(b, "serving hash id", (uint64_t)row->hash_ids[i]);
        prompt_segment(b->work->maker, seed, n, out);
        words -= n;
    }
    return words;
}

/* Which shared prefix a request begins with, and how many of its words that is; 0 = none. */
static int64_t prefix_words(const work_block *b, int64_t index, int64_t words, uint64_t *id) {
    const serving_work *w = b->work;
    const trace_row *row = row_of(b, index);
    if (index % w->turns) /* later turns share the conversation anyway */
        return 0;
    *id = w->prefixes ? number(b, b->prefix, (uint64_t)index) % (uint64_t)w->prefixes
                      : (uint64_t)(index / w->turns % b->users);
    if (row && row->prefix >= 0) {
        *id = (uint64_t)row->prefix;
        if (row->prefix_length >= 0) {
            int64_t n = row->prefix_length ? prompt_part_words(w->maker, row->prefix_length) : 0;
            return n < words ? n : words;
        }
    }
    return (int64_t)((double)words * w->prefix_share);
}

void work_text(const work_block *b, int64_t index, buf *out) {
    const serving_work *w = b->work;
    const trace_row *row = row_of(b, index);
    int64_t tokens = work_input(b, index);
    bool first = index % w->turns == 0;
    int64_t words = first ? prompt_words(w->maker, tokens) : prompt_part_words(w->maker, tokens);
    uint64_t id = 0;
    prompt_begin(out);
    if (row && row->n_hash_ids && first) {
        words = put_hashed(b, row, words, out);
    } else {
        int64_t shared = prefix_words(b, index, words, &id);
        prompt_segment(w->maker, shared_seed(b, "serving prefix", id), shared, out);
        words -= shared;
    }
    prompt_segment(w->maker, number(b, b->text, (uint64_t)index), words, out);
}
