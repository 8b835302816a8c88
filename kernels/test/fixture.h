/* fixture.h - a whole decode step for tests: inputs that are pure functions of their coordinates, a
 * shuffled pool with poison wherever nothing belongs, and the judge's view of it. */
#ifndef SNAPMLA_KERNELS_TEST_FIXTURE_H
#define SNAPMLA_KERNELS_TEST_FIXTURE_H

#include "kernels/judge.h"

enum { FIXTURE_BATCH = 8 };

typedef struct fixture_spec fixture_spec;

/* Changes a row before it is rounded to bf16: FP32 [d_c + d_r]; @token is -1 for a query. */
typedef void (*fixture_change)(const fixture_spec *spec, int64_t token, float *row);

struct fixture_spec {
    const char *isa; /* of the cpu backend */
    int threads;     /* 0 = 2 */
    mla_precision precision;
    int heads, s_q, d_c, d_r; /* 0 = 1, 1, 512, 64 */
    int batch;
    int length[FIXTURE_BATCH];
    int id[FIXTURE_BATCH]; /* whose numbers a sequence has: equal ids, equal rows */
    int splits;
    uint64_t pages_seed; /* the order of pages in the pool */
    int poison;          /* the byte in unused slots and outputs; 0 = 0xff, NaN in all formats */
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

/* The row of @id's token (or of query (s, h): token -1 - (s * heads + h)) as bf16 [d_c + d_r]. */
void fixture_row(const fixture_spec *spec, int id, int64_t token, uint16_t *row);

void fixture_make(fixture *f, fixture_spec spec); /* fails the test when it can't */
void fixture_run(fixture *f);                     /* schedule and run */
void fixture_free(fixture *f);

judge_step fixture_step(const fixture *f);
judge_error fixture_judge(const fixture *f, ref_pv pv, int64_t rows);

/* Judged within the bounds of the arm's own arithmetic; prints what is wrong. */
void fixture_expect(const fixture *f, int64_t rows);

/* Usable instruction sets of the cpu backend, NULL-terminated. */
const char *const *fixture_isas(void);

#endif
