/* row.h - one cell as a row of the result file's `bench` section, in two steps: what was measured,
 * which goes into the journal, and what follows from it and the ceilings, which is worked out when
 * the sweep is over and both are known for good. */
#ifndef SNAPMLA_HARNESS_BENCH_ROW_H
#define SNAPMLA_HARNESS_BENCH_ROW_H

#include "base/json.h"
#include "harness/bench/check_output.h"
#include "harness/measure/env.h"
#include "harness/measure/gpu.h"
#include "harness/measure/paired_probes.h"
#include "harness/measure/stop.h"
#include "harness/record/cell.h"
#include "kernels/ceilings.h"

enum { ROW_KEY = 256 };

typedef enum { ROW_PASSED, ROW_FAILED, ROW_SKIPPED, ROW_ERROR } row_status;

/* What is the same for all cells of a sweep; strings are borrowed. */
typedef struct {
    mla_backend_info backend;
    const char *kernel_hash; /* of this program; NULL = unknown */
    const char *distribution;
    bool sustained;
} row_context;

typedef struct {
    bench_shape shape;
    bench_kind kind;
    bench_scope scope;
    row_status status;
    const char *reason; /* why not ROW_PASSED; borrowed */
    const char *kernel; /* which served it, and its machine code's hash; NULL = the backend's */
    const char *kernel_hash;
    const char *cold;           /* "rotate", "flush" or "none" */
    const verified *verdict;    /* NULL where nothing was judged */
    const stop_rule *timing;    /* with samples where status is ROW_PASSED */
    const paired_probes *looks; /* between the samples; NULL or none where the backend can't */
    env_state before, after;
    gpu_state gpu_before, gpu_after; /* unknown where there is none */
    double power_w;                  /* while its steps ran; NAN = unknown */
} row_measured;

/* The row as JSON, without what derives from ceilings; the caller owns it. NULL: out of memory. */
js *row_json(const row_context *ctx, const row_measured *m);

/* A name for the cell, the journal's key: "fp8 served H16 s1 b8 c8192 d512+64 mla", the backend,
 * its kernel and the first digits of the kernel's hash. */
void row_key(const row_context *ctx, const bench_shape *s, bench_kind k, bench_scope scope,
             char out[ROW_KEY]);

/* ---- rows as structs ---- */

/**
 * cell_derive - complete a row that passed, from its shape, median and the ceilings
 *
 * @mem: owns the new list of flags
 *
 * Sets the fields of CELL_DERIVED, and the flag below_floor where the median of a cell on a cold
 * cache is below the floor. Does nothing for other rows. May be repeated when a ceiling rises.
 * SNAP_E_NOMEM; SNAP_E_INPUT for a row that row_json() did not make (a journal's).
 */
snap_status cell_derive(cell_record *c, const mla_ceilings *ceilings, arena *mem,
                        snap_err *err) SNAP_CHECK_RESULT;

/* Raises the ceilings to the best rates that were probed between the row's samples. */
void cell_raise(const cell_record *c, mla_ceilings *to);

/* FP8 over BF16 of one shape and scope: the ratio of medians; NAN unless both rows passed. */
double cell_speedup(const cell_record *bf16, const cell_record *fp8);

/* Flags the FP8 row weak_baseline where the speed-up exceeds the ratio of the two floors, which no
 * good BF16 kernel would admit. Both are derived. False: out of memory. */
bool cell_flag_baseline(const cell_record *bf16, cell_record *fp8, arena *mem);

/* Puts what was derived back into the JSON row that @c, which passed, was read from. False: out of
 * memory. */
bool row_store(js *row, const cell_record *c);

#endif
