/* bench_arm_inside.h - the parts of an arm that its source files share: its struct, its slices of
 * device memory, and functions on them. */
#ifndef SNAPMLA_HARNESS_BENCH_BENCH_ARM_INSIDE_H
#define SNAPMLA_HARNESS_BENCH_BENCH_ARM_INSIDE_H

#include "harness/bench/bench_arm.h"
#include "kernels/plugin/packed.h"

/* Device memory with one slice for each set. */
typedef struct {
    unsigned char *at;
    size_t stride; /* bytes from one set to the next, a multiple of MLA_ALIGN */
} slices;

struct bench_arm {
    mla_backend *be; /* borrowed, like `from` */
    const numbers *from;
    bench_shape shape;
    bench_kind kind;
    const arm_format *format; /* borrowed; NULL: the cache is that of mla.h */
    packed_cache packed;      /* with a format */
    cache_bytes shared;       /* with a format: a small cache with the values that all its tokens
                                 share */
    float *planted_rows;      /* with a format: [pages of set 0][d_c + d_r] the planted tokens as
                                 the cache holds them */
    bool *ran;                /* with a format: [sets] whether the set's step has run */
    bool uncaptured;          /* with a format: the step could not be recorded */
    int page_tokens;
    mla_precision precision; /* precision of the cache; with a format, of the queries: MLA_BF16 */
    int sets, next;
    int pages_per_sequence; /* pages of the longest sequence */
    int table_width;
    int64_t
        *first_page; /* [batch + 1] pages of a set before those of each sequence; the last one is
                            the number of pages of a set */
    mla_plan *plan;
    mla_cache cache;
    slices table, q, q8, q_rope, q_scale, kv, out, lse;
    int32_t *seqlens; /* device [batch]; all sets share it */
    bool flush;       /* flush the device's caches before each step */
    bool host_memory;
    lab_rows staged;  /* BENCH_UNFUSED: quantised new tokens before they are copied to their
                         pages */
    mla_plan *copies; /* BENCH_COPIED: the plan of the BF16 copy, the copy, and its block table in
                         sequence order */
    mla_cache copy;
    int32_t *copy_table;
    lab_recording **served;    /* [sets] one recorded served step each; made at its first use */
    uint64_t *query_seed;      /* [sets] seed of the queries that each set has now */
    uint64_t *zero;            /* device: one 0, the first row of the queries */
    uint64_t drawn;            /* how many times any set was given queries */
    int last;                  /* the set of the last step */
    int64_t samples;           /* timed steps since bench_arm_reset() */
    int64_t fresh_samples;     /* timed steps since bench_arm_reset() whose queries were not the
                                  first ones of the arm */
    bool late;                 /* the last step or loop was late (bench_arm_is_host_limited()) */
    int64_t times, late_times; /* samples and loops since bench_arm_reset(), and the late ones */
    bench_output kept;
    bool planted;
    uint64_t plant_seed;
};

/* The number of pages of one set, and of one sequence. */
int64_t arm_pages(const bench_arm *arm);
int arm_pages_of(const bench_arm *arm, int b);

/* The place of page @page of the arm, counted over sets, sequences and pages of a sequence. */
typedef struct {
    int set, b;
    int64_t page; /* within the sequence */
} page_place;
page_place arm_place(const bench_arm *arm, int64_t page);

/* The slice of set @set, or NULL if no memory was allocated. */
void *arm_slice(const slices *s, int set);

/* Fills what steps read: cache, block tables, sequence lengths, queries, new tokens. Sets the
 * outputs to NaN, but not the log-sum-exps. */
snap_status arm_fill(bench_arm *arm, snap_err *err) SNAP_CHECK_RESULT;

/* Fills the pages and the block table of set 0 again. */
snap_status arm_refill(bench_arm *arm, snap_err *err) SNAP_CHECK_RESULT;

/* Gives a set queries from the source of that seed. */
snap_status arm_draw_queries(bench_arm *arm, int set, uint64_t seed,
                             snap_err *err) SNAP_CHECK_RESULT;

/* Quantises the queries of a set if the cache of the arm is FP8. */
snap_status arm_quantise_queries(bench_arm *arm, int set, snap_err *err) SNAP_CHECK_RESULT;

/* The page numbers of the pool in random order: page i of the arm, counted over sets, sequences and
 * pages of a sequence, is page order[i]. NULL if out of memory; the caller frees it. */
int32_t *arm_page_order(const bench_arm *arm);

/* Writes the block table of a set. */
snap_status arm_upload_table(bench_arm *arm, int set, const int32_t *order,
                             snap_err *err) SNAP_CHECK_RESULT;

/* The number of tokens in the last page of sequence @b. */
int arm_tail(const bench_arm *arm, int b);

/* The step of a set as the backend reads it, and its queries and results. */
mla_step arm_step(const bench_arm *arm, int set);
mla_attn arm_attn(const bench_arm *arm, int set);

/* Starts the clock. With a flush, the clock starts after it; the flush keeps the device busy while
 * the host enqueues the step. Without a flush, the clock starts on an idle device. */
snap_status arm_start_clock(bench_arm *arm, snap_err *err) SNAP_CHECK_RESULT;

/* Stops the clock when the step is enqueued, waits for the device, and notes whether the step is
 * late. */
snap_status arm_stop_clock(bench_arm *arm, double *ns, snap_err *err) SNAP_CHECK_RESULT;

/* ---- planted tokens ---- */

/* The slot of the replaced tokens, the same in all pages, and the number of pages of sequence @b in
 * set 0 that have one. These are its first pages. */
int arm_planted_slot(const bench_arm *arm);
int arm_planted_pages(const bench_arm *arm, int b);

/* Writes the row of the token that is planted in page @page of set 0: bf16 [d_c + d_r]. */
void arm_planted_row(const bench_arm *arm, int64_t page, uint16_t *row);

/* Writes the row that all queries have while tokens are planted. */
void arm_planted_query(const bench_arm *arm, uint16_t *row);

/* ---- an arm with a cache format ---- */

/* Allocates the pools, fills the pages with 0xff (NaN in most types), and writes the values that
 * all tokens share. */
snap_status packed_arm_alloc(bench_arm *arm, snap_err *err) SNAP_CHECK_RESULT;
void packed_arm_release(bench_arm *arm);

/* Fills the first @pages pages of the arm. With @planted, the pages of set 0 have their planted
 * tokens. */
snap_status packed_arm_fill(bench_arm *arm, const int32_t *order, int64_t pages, bool planted,
                            snap_err *err) SNAP_CHECK_RESULT;

/* Runs one step of a set, from a recording once there is one. */
snap_status packed_arm_step(bench_arm *arm, int set, double *ns, snap_err *err) SNAP_CHECK_RESULT;

/* Enqueues the step of set @set, which must be the set that was scheduled last. */
snap_status packed_arm_enqueue(bench_arm *arm, int set, snap_err *err) SNAP_CHECK_RESULT;

/* bench_arm_planted() of such an arm. */
int64_t packed_arm_planted(const bench_arm *arm, int b, double *want, double *lse);

#endif
