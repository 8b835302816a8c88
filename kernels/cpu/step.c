/* Splits a step into parts of whole pages, distributes them over threads, and merges the partial
 * results of each split sequence.
 *
 * A part costs time besides its tokens: its queries are packed, its sums are written and read
 * again, and its first pages are not prefetched. Where this is much (cpu_isa.large_parts_from), the
 * first three quarters of a long sequence are cut into large parts, each at most half of what a
 * thread has to do. The last quarter is cut into small parts, which start after all large ones and
 * even out threads of different speed. */
#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/cpu.h"

enum {
    kPartsPerThread = 8, /* several parts per thread even out threads of different speed */
    kMinPartPages = 4,
    kMaxSplits = 64,
    kJoinRows = 8, /* rows that a thread merges at a time */
};

/* One part: a range of a sequence's tokens, for one group of its rows. */
typedef struct {
    int seq, row0, rows;
    int64_t length, first, end;
    int64_t partial; /* index of its partial result; -1: the part is the whole sequence */
} cpu_item;

/* A row group of a split sequence, with the partial results partial .. partial + parts - 1. */
typedef struct {
    int seq, row0, rows, parts;
    int64_t partial;
} cpu_join;

typedef struct {
    mla_plan base;
    int max_parts; /* per sequence */
    int64_t max_items, max_partials;
    int64_t items, joins;
    cpu_item *item; /* [max_items] */
    cpu_join *join; /* [max_partials / 2 + 1] */
    size_t sums_bytes, scratch_bytes;
    char *scratch; /* [threads][scratch_bytes]; each begins with o, m and l of an unsplit
                      sequence */
    float *o;      /* [max_partials][group rows][d_c] */
    float *ml;     /* [max_partials][2][group rows]: maxima, then sums */
} cpu_plan;

static size_t aligned_size(size_t bytes) {
    return (bytes + MLA_ALIGN - 1) / MLA_ALIGN * MLA_ALIGN;
}

static int min_int(int64_t a, int64_t b) {
    return (int)(a < b ? a : b);
}

/* ---- plan ----------------------------------------------------------------------------------- */

static int64_t pages_of(int64_t tokens) {
    return (tokens + MLA_PAGE - 1) / MLA_PAGE;
}

static void release(cpu_plan *plan) {
    free(plan->item);
    free(plan->join);
    free(plan->scratch);
    free(plan->o);
    free(plan->ml);
    free(plan);
}

void cpu_plan_free(mla_plan *base) {
    release((cpu_plan *)base);
}

/* Computes the largest number of parts that a step within the capacity can have. */
static void count_parts(cpu_plan *plan, int threads) {
    const mla_capacity *cap = &plan->base.cap;
    int64_t longest = pages_of(cap->max_tokens),
            groups = (cap->s_q * cap->heads - 1) / CPU_MAX_ROWS + 1;
    int64_t wanted = cap->splits ? cap->splits : (int64_t)threads * kPartsPerThread;
    plan->max_parts = min_int(min_int(wanted, kMaxSplits), longest);
    int64_t parts = cap->splits ? (int64_t)cap->batch * plan->max_parts
                                : cap->batch + (int64_t)threads * kPartsPerThread;
    plan->max_items = parts * groups;
    plan->max_partials = plan->max_parts > 1 ? plan->max_items : 0;
}

/* Allocates the memory that the largest step needs. */
static bool reserve(cpu_plan *plan, int threads) {
    const mla_capacity *cap = &plan->base.cap;
    const cpu_backend *be = (const cpu_backend *)plan->base.be;
    int rows = min_int((int64_t)cap->s_q * cap->heads, CPU_MAX_ROWS);
    count_parts(plan, threads);
    size_t row_floats = (size_t)rows * (size_t)cap->d_c, partials = (size_t)plan->max_partials;
    plan->sums_bytes = aligned_size((row_floats + 2 * CPU_MAX_ROWS) * sizeof(float));
    plan->scratch_bytes =
        plan->sums_bytes + aligned_size(be->isa->scratch_bytes(rows, cap->d_c, cap->d_r));
    plan->item = calloc((size_t)plan->max_items, sizeof *plan->item);
    plan->join = calloc(partials / 2 + 1, sizeof *plan->join);
    plan->scratch = cpu_memory((size_t)threads * plan->scratch_bytes);
    plan->o = cpu_memory(partials * row_floats * sizeof *plan->o);
    plan->ml = cpu_memory(partials * 2 * (size_t)rows * sizeof *plan->ml);
    return plan->item && plan->join && plan->scratch && plan->o && plan->ml;
}

snap_status cpu_plan_create(mla_plan **out, mla_backend *base, const mla_capacity *cap,
                            snap_err *err) {
    const cpu_backend *be = (const cpu_backend *)base;
    cpu_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a plan");
    plan->base = (mla_plan){.be = base, .cap = *cap};
    if (!reserve(plan, parallel_threads(be->pool))) {
        release(plan);
        return err_set(err, SNAP_E_NOMEM, "out of memory for a plan of %d x %d rows", cap->batch,
                       cap->s_q * cap->heads);
    }
    *out = (mla_plan *)plan;
    return SNAP_OK;
}

/* ---- schedule ------------------------------------------------------------------------------- */

int64_t cpu_length(const mla_plan *plan, const mla_step *step, int b) {
    int64_t length = step->seqlens[b], room = (int64_t)step->table_width * MLA_PAGE;
    length = length < 0 ? 0 : length;
    length = length > room ? room : length;
    return length > plan->cap.max_tokens ? plan->cap.max_tokens : length;
}

/* How a sequence is split: @large parts of its first pages, then parts of the others. */
typedef struct {
    int large, parts;
    int64_t large_pages;
} cpu_cut;

static bool has_large_parts(const cpu_plan *plan) {
    const mla_capacity *cap = &plan->base.cap;
    int from = ((const cpu_backend *)plan->base.be)->isa->large_parts_from;
    int rows = min_int((int64_t)cap->s_q * cap->heads, CPU_MAX_ROWS);
    return !cap->splits && from && rows >= from;
}

/* Splits a sequence of @pages. If the plan has a fixed `splits`, the parts have equal sizes, and
 * their number depends on the sequence and the plan alone. Otherwise it also depends on @total, the
 * step's pages. */
static cpu_cut cut_of(const cpu_plan *plan, int64_t pages, int64_t total) {
    const cpu_backend *be = (const cpu_backend *)plan->base.be;
    int64_t threads = parallel_threads(be->pool), share = total / (threads * kPartsPerThread) + 1;
    share = share > kMinPartPages ? share : kMinPartPages;
    int64_t equal = plan->base.cap.splits ? pages : (pages + share - 1) / share;
    cpu_cut cut = {.large_pages = pages};
    cut.large = cut.parts = equal > 1 ? min_int(equal, plan->max_parts) : 1;
    int64_t head = pages - pages / 4, size = total / (threads * 2) + 1;
    size = size > share ? size : share;
    int64_t large = (head + size - 1) / size, small = (pages - head + share - 1) / share;
    if (has_large_parts(plan) && cut.parts > 1 && large + small < cut.parts)
        cut = (cpu_cut){(int)large, (int)(large + small), head};
    return cut;
}

/* First page of part @i of a sequence of @pages. */
static int64_t first_page(cpu_cut cut, int64_t pages, int i) {
    if (i <= cut.large)
        return cut.large_pages * i / cut.large;
    return cut.large_pages + (pages - cut.large_pages) * (i - cut.large) / (cut.parts - cut.large);
}

/* Adds the parts from @from up to @to, without @to, of a row group to the items. @partial is the
 * index of the group's first partial result. */
static void add_items(cpu_plan *plan, cpu_item item, cpu_cut cut, int from, int to,
                      int64_t partial) {
    int64_t pages = pages_of(item.length);
    for (int i = from; i < to; i++) {
        int64_t end = first_page(cut, pages, i + 1) * MLA_PAGE;
        item.first = first_page(cut, pages, i) * MLA_PAGE;
        item.end = end < item.length ? end : item.length;
        item.partial = cut.parts > 1 ? partial + i : -1;
        plan->item[plan->items++] = item;
    }
}

/* Adds the large parts of all sequences, or the small ones. */
static void add_parts(cpu_plan *plan, const mla_step *step, int64_t total, bool small) {
    int rows = step->s_q * plan->base.cap.heads;
    int64_t partials = 0;
    for (int b = 0; b < step->batch; b++) {
        int64_t length = cpu_length(&plan->base, step, b);
        cpu_cut cut = cut_of(plan, pages_of(length), total);
        for (int row0 = 0; row0 < rows; row0 += CPU_MAX_ROWS) {
            cpu_item item = {b, row0, min_int(rows - row0, CPU_MAX_ROWS), .length = length};
            add_items(plan, item, cut, small ? cut.large : 0, small ? cut.parts : cut.large,
                      partials);
            if (cut.parts > 1 && !small)
                plan->join[plan->joins++] = (cpu_join){b, row0, item.rows, cut.parts, partials};
            partials += cut.parts > 1 ? cut.parts : 0;
        }
    }
}

snap_status cpu_schedule(mla_plan *base, const mla_step *step, snap_err *err) {
    (void)err;
    cpu_plan *plan = (cpu_plan *)base;
    int64_t total = 0;
    for (int b = 0; b < step->batch; b++)
        total += pages_of(cpu_length(base, step, b));
    plan->items = plan->joins = 0;
    add_parts(plan, step, total, false);
    add_parts(plan, step, total, true);
    return SNAP_OK;
}

/* ---- run ------------------------------------------------------------------------------------ */

typedef struct {
    const cpu_backend *be;
    const cpu_plan *plan;
    const mla_step *step;
    const mla_cache *cache;
    const mla_attn *attn;
} run_context;

/* Merges the partial results of a row into its output and log-sum-exp. o of part i is at i *
 * stride, m and l are at i * ml_stride. l is 0 if the row sees no token of the part, and NaN if a
 * score is NaN; then all results of the row are NaN. */
static void finish_row(const run_context *run, int64_t row, const float *o, int64_t stride,
                       const float *m, const float *l, int64_t ml_stride, int parts) {
    float weight[kMaxSplits] = {0}, largest = -INFINITY;
    double sum = 0.0;
    for (int i = 0; i < parts; i++)
        largest = fmaxf(largest, m[i * ml_stride]);
    for (int i = 0; i < parts; i++) {
        weight[i] = l[i * ml_stride] == 0.0f ? 0.0f : exp2f(m[i * ml_stride] - largest);
        sum += (double)weight[i] * (double)l[i * ml_stride];
    }
    for (int i = 0; i < parts; i++)
        weight[i] = sum == 0.0 ? 0.0f : (float)((double)weight[i] / sum);
    int d_c = run->plan->base.cap.d_c;
    run->be->isa->combine((uint16_t *)run->attn->out + row * d_c, o, stride, weight, parts, d_c);
    if (run->attn->lse)
        run->attn->lse[row] = sum == 0.0
                                  ? -INFINITY
                                  : (float)(0.69314718055994530942 * ((double)largest + log2(sum)));
}

static void run_item(void *ctx, int worker, int64_t index) {
    const run_context *run = ctx;
    const cpu_plan *plan = run->plan;
    const mla_capacity *cap = &plan->base.cap;
    const cpu_item *item = &plan->item[index];
    size_t per_row = (size_t)(run->step->s_q * cap->heads) * (size_t)item->seq;
    size_t width = (size_t)(cap->precision == MLA_FP8 ? cap->d_c : 2 * (cap->d_c + cap->d_r));
    cpu_part part = {
        .precision = cap->precision,
        .d_c = cap->d_c,
        .d_r = cap->d_r,
        .cache = *run->cache,
        .table = run->step->block_table + (int64_t)item->seq * run->step->table_width,
        .length = item->length,
        .first = item->first,
        .end = item->end,
        .s_q = run->step->s_q,
        .heads = cap->heads,
        .row0 = item->row0,
        .rows = item->rows,
        .q = (const char *)run->attn->q + per_row * width,
        .softmax_scale = run->attn->softmax_scale,
    };
    if (cap->precision == MLA_FP8) {
        part.q_rope = (const uint16_t *)run->attn->q_rope + per_row * (size_t)cap->d_r;
        part.q_scale = run->attn->q_scale + per_row;
    }
    int group = min_int((int64_t)cap->s_q * cap->heads, CPU_MAX_ROWS);
    char *memory = plan->scratch + (size_t)worker * plan->scratch_bytes;
    float *o = (float *)(void *)memory, *m = o + (int64_t)group * cap->d_c, *l = m + CPU_MAX_ROWS;
    if (item->partial >= 0) {
        o = plan->o + item->partial * group * cap->d_c;
        m = plan->ml + item->partial * 2 * group;
        l = m + group;
    }
    run->be->isa->attend(&part, memory + plan->sums_bytes, o, m, l);
    for (int i = 0; item->partial < 0 && i < item->rows; i++)
        finish_row(run, (int64_t)per_row + item->row0 + i, o + (int64_t)i * cap->d_c, 0, m + i,
                   l + i, 0, 1);
}

/* Number of row slices of a join, the same for all joins of a step. */
static int64_t join_slices(const run_context *run) {
    int rows = min_int((int64_t)run->step->s_q * run->plan->base.cap.heads, CPU_MAX_ROWS);
    return (rows + kJoinRows - 1) / kJoinRows;
}

static void run_join(void *ctx, int worker, int64_t index) {
    (void)worker;
    const run_context *run = ctx;
    const cpu_plan *plan = run->plan;
    const mla_capacity *cap = &plan->base.cap;
    int64_t slices = join_slices(run), from = index % slices * kJoinRows;
    const cpu_join *join = &plan->join[index / slices];
    int64_t group = min_int((int64_t)cap->s_q * cap->heads, CPU_MAX_ROWS);
    const float *o = plan->o + join->partial * group * cap->d_c,
                *m = plan->ml + join->partial * 2 * group;
    int64_t row = (int64_t)join->seq * run->step->s_q * cap->heads + join->row0;
    for (int64_t i = from; i < join->rows && i < from + kJoinRows; i++)
        finish_row(run, row + i, o + i * cap->d_c, group * cap->d_c, m + i, m + group + i,
                   2 * group, join->parts);
}

snap_status cpu_run(mla_plan *base, const mla_step *step, const mla_cache *cache,
                    const mla_attn *attn, snap_err *err) {
    (void)err;
    cpu_plan *plan = (cpu_plan *)base;
    const cpu_backend *be = (const cpu_backend *)base->be;
    run_context run = {be, plan, step, cache, attn};
    parallel_for(be->pool, plan->items, run_item, &run);
    parallel_for(be->pool, plan->joins * join_slices(&run), run_join, &run);
    return SNAP_OK;
}
