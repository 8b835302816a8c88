/* step.h - a decode step on any backend, with its image on the host: inputs that are pure functions of
 * their coordinates, a shuffled pool, poison wherever nothing belongs. */
#ifndef SNAPMLA_KERNELS_CONFORMANCE_STEP_H
#define SNAPMLA_KERNELS_CONFORMANCE_STEP_H

#include "kernels/judge.h"

enum { STEP_BATCH = 6, STEP_WIDTH = MLA_MAX_CONTENT + MLA_MAX_ROPE };

typedef struct step_spec step_spec;

/* Changes a row before it is rounded to bf16: FP32 [d_c + d_r]; @token is -1 for a query. */
typedef void (*step_change)(const step_spec *spec, int64_t token, float *row);

struct step_spec {
    mla_precision precision;
    int heads, s_q, d_c, d_r; /* 0 = 1, 1, 512, 64 */
    int batch;
    int length[STEP_BATCH];
    int id[STEP_BATCH]; /* whose numbers a sequence has: equal ids, equal rows */
    int splits;
    uint64_t pages_seed; /* the order of pages in the pool */
    int poison;          /* the byte where nothing belongs; 0 = 0xff, NaN in all formats */
    step_change change;
};

/* Device memory and its image. */
typedef struct {
    void *host, *device;
    size_t bytes;
} step_area;

typedef enum {
    AREA_LENGTHS,
    AREA_TABLE,
    AREA_CONTENT,
    AREA_ROPE,
    AREA_SCALE,
    AREA_Q,
    AREA_Q_ROPE,
    AREA_Q_SCALE,
    AREA_OUT,
    AREA_LSE,
    STEP_AREAS
} step_area_name;

typedef struct {
    step_spec spec;
    mla_backend *be;
    mla_plan *plan;
    step_area area[STEP_AREAS];
    mla_step step; /* of device memory, as are cache and attn */
    mla_cache cache;
    mla_attn attn;
    judge_step host; /* the same of the images */
} step_case;

/* The row of @id's token (or of query i: token -1 - i) as bf16 [d_c + d_r]. */
void step_row(const step_spec *spec, int id, int64_t token, uint16_t *row);

/* @c: released by step_free() also after a failure. Errors of the backend, SNAP_E_NOMEM. */
snap_status step_make(step_case *c, mla_backend *be, const step_spec *spec,
                      snap_err *err) SNAP_CHECK_RESULT;
void step_free(step_case *c);

/* Poisons the outputs, runs, brings the outputs to the host. */
snap_status step_run(step_case *c, snap_err *err) SNAP_CHECK_RESULT;

/* One area between host and device. */
snap_status step_copy_in(step_case *c, step_area_name a, snap_err *err) SNAP_CHECK_RESULT;
snap_status step_copy_out(step_case *c, step_area_name a, snap_err *err) SNAP_CHECK_RESULT;

#endif
