/* step.h - a decode step on any backend, with a copy ("image") of all its data on the host. Inputs
 * are pure functions of their coordinates, pages lie in shuffled order, unused bytes are poisoned,
 * and unused table entries are invalid. */
#ifndef SNAPMLA_KERNELS_CONFORMANCE_STEP_H
#define SNAPMLA_KERNELS_CONFORMANCE_STEP_H

#include "kernels/judge.h"

enum { STEP_BATCH = 256, STEP_WIDTH = MLA_MAX_CONTENT + MLA_MAX_ROPE };

typedef struct step_spec step_spec;

/* Modifies a row, FP32 [d_c + d_r], of sequence id @id before it is rounded to bf16. Query row i is
 * token -1 - i. */
typedef void (*step_change)(const step_spec *spec, int id, int64_t token, float *row);

struct step_spec {
    mla_precision precision;
    int heads, s_q, d_c, d_r; /* 0 means the default: 1, 1, 512, 64 */
    int batch;
    int length[STEP_BATCH];
    int id[STEP_BATCH]; /* seed of each sequence: equal ids give equal rows */
    int splits;
    uint64_t pages_seed; /* determines the order of pages in the pool */
    int poison;          /* value of unused bytes; 0 = 0xff, which is NaN in all formats */
    int spare;  /* further table entries per sequence that no length needs; each row has one in
                            any case */
    bool blank; /* rows are zeros before `change` */
    step_change change;
};

/* A piece of device memory and its image on the host. */
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
    mla_scale scale; /* as in mla_backend_info */
    mla_plan *plan;
    step_area area[STEP_AREAS];
    mla_step step; /* device pointers, as in cache and attn */
    mla_cache cache;
    mla_attn attn;
    judge_step host; /* the same step with pointers to the images */
} step_case;

/* The rows of a sequence repeat after this many tokens, apart from spec.change, because most of the
 * time of a long step would go into drawing rows. The number is prime, so the rows of two pages of
 * one sequence are the same only if the pages lie at least 8191 pages apart. */
enum { STEP_DRAWN = 8191 };

/* Computes the row of token @token of sequence id @id as bf16 [d_c + d_r]. Query row i of a
 * sequence is token -1 - i. */
void step_row(const step_spec *spec, int id, int64_t token, uint16_t *row);

/* The bytes of all areas of the step on the device; the images on the host have as many. */
size_t step_bytes(const step_spec *spec);

/* Creates the step on @be. @c must be released by step_free(), also after a failure. Returns the
 * errors of mla_plan_create() and mla_check_step(), those of the backend's copies, and
 * SNAP_E_NOMEM. */
snap_status step_make(step_case *c, mla_backend *be, const step_spec *spec,
                      snap_err *err) SNAP_CHECK_RESULT;
void step_free(step_case *c);

/* Poisons the outputs, runs the step and copies the outputs to the host. */
snap_status step_run(step_case *c, snap_err *err) SNAP_CHECK_RESULT;

/* Copies one area between host and device. An area of 0 bytes is not copied. */
snap_status step_copy_in(step_case *c, step_area_name a, snap_err *err) SNAP_CHECK_RESULT;
snap_status step_copy_out(step_case *c, step_area_name a, snap_err *err) SNAP_CHECK_RESULT;

#endif
