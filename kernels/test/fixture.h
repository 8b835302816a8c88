/* fixture.h - a complete decode step for tests of the CPU backend. Inputs are pure functions of
 * their coordinates, pages lie in shuffled order, unused slots and outputs are poisoned, unused
 * table entries are invalid, and the step can be judged. */
#ifndef SNAPMLA_KERNELS_TEST_FIXTURE_H
#define SNAPMLA_KERNELS_TEST_FIXTURE_H

#include "kernels/judge.h"

enum { FIXTURE_BATCH = 8 };

typedef struct fixture_spec fixture_spec;

/* Modifies a row, FP32 [d_c + d_r], before it is rounded to bf16. @token is -1 for a query. */
typedef void (*fixture_change)(const fixture_spec *spec, int64_t token, float *row);

struct fixture_spec {
    const char *isa; /* instruction set of the cpu backend */
    int threads;     /* 0 means 2 */
    mla_precision precision;
    int heads, s_q, d_c, d_r; /* 0 means the default: 1, 1, 512, 64 */
    int batch;
    int length[FIXTURE_BATCH];
    int id[FIXTURE_BATCH]; /* seed of each sequence: equal ids give equal rows */
    int splits;
    uint64_t pages_seed; /* determines the order of pages in the pool */
    int poison;          /* value of unused slots and outputs; 0 = 0xff, which is NaN in all
                            formats */
    fixture_change change;
};

typedef struct {
    fixture_spec spec;
    mla_backend *be;
    mla_plan *plan;
    mla_step step;
    mla_cache cache;
    mla_attn attn;
    size_t out_bytes, lse_bytes;
} fixture;

/* Computes the row of token @token of sequence id @id as bf16 [d_c + d_r]. Query (s, h) is token -1
 * - (s * heads + h). */
void fixture_row(const fixture_spec *spec, int id, int64_t token, uint16_t *row);

void fixture_make(fixture *f, fixture_spec spec); /* a failure fails the test */
void fixture_run(fixture *f);                     /* schedule and run */
void fixture_free(fixture *f);

judge_step fixture_step(const fixture *f);
judge_error fixture_judge(const fixture *f, ref_pv pv, int64_t rows);

/* Expects the step to be within the bounds of judge_bound_of(): MLA_FP8 against its own arithmetic,
 * MLA_BF16 against exact probabilities. Prints the first violation. */
void fixture_expect(const fixture *f, int64_t rows);

/* Names of the instruction sets that this machine supports, NULL-terminated; with the thread
 * sanitizer, the preferred one only. */
const char *const *fixture_isas(void);

#endif
