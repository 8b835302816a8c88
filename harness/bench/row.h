/* row.h - makes the row of a cell for the result file's section `bench`, in two steps. The measured
 * values go into the journal at once. The values that follow from them and the ceilings are derived
 * after the sweep, when the ceilings are final. */
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

/* Values that all cells of a sweep share; strings are borrowed. */
typedef struct {
    mla_backend_info backend;
    const char *kernel_hash; /* hash of this program; NULL = unknown */
    const char *distribution;
    bool sustained;
} row_context;

typedef struct {
    bench_shape shape;
    bench_kind kind;
    bench_scope scope;
    row_status status;
    const char *reason; /* why the status is not ROW_PASSED; borrowed */
    const char *kernel; /* the kernel that ran, and the hash of its machine code; NULL = the
                           backend's */
    const char *kernel_hash;
    const char *cold;            /* "rotate", "flush" or "none" */
    const verified *verdict;     /* NULL if nothing was checked */
    const stop_rule *timing;     /* has samples if the status is ROW_PASSED */
    const paired_probes *probes; /* rates probed between the samples; NULL or empty if the backend
                                   has no probes */
    env_state before, after;
    gpu_state gpu_before, gpu_after; /* unknown without an NVIDIA device */
    double power_w;                  /* while the steps ran; NAN = unknown */
} row_measured;

/* The row as JSON, without the derived fields; the caller owns it. NULL: out of memory. */
js *row_json(const row_context *ctx, const row_measured *m);

/* The key of the cell in the journal: "fp8 served H16 s1 b8 c8192 d512+64 mla", the backend, its
 * kernel and the first digits of the kernel's hash. */
void row_key(const row_context *ctx, const bench_shape *s, bench_kind k, bench_scope scope,
             char out[ROW_KEY]);

/* ---- rows as structs ---- */

/**
 * cell_derive - compute the derived fields of a row that passed
 *
 * @mem: owns the new list of flags
 *
 * Sets the fields of CELL_DERIVED from the shape, the median and the ceilings. Sets the flag
 * below_floor if the cache was cold and the median is below the floor. Does nothing for other rows.
 * Call it again when a ceiling rises. SNAP_E_NOMEM. SNAP_E_INPUT: a row of a journal that
 * row_json() did not make.
 */
snap_status cell_derive(cell_record *c, const mla_ceilings *ceilings, arena *mem,
                        snap_err *err) SNAP_CHECK_RESULT;

/* Raises the ceilings to the best rates that were probed between the samples of the row. */
void cell_raise(const cell_record *c, mla_ceilings *to);

/* Speed-up of FP8 over BF16, the ratio of the medians; NAN unless both rows passed. */
double cell_speedup(const cell_record *bf16, const cell_record *fp8);

/* Sets the flag weak_baseline of the FP8 row if the speed-up exceeds the ratio of the two floors: a
 * BF16 kernel near its floor would not allow that. Both rows must be derived. Returns false when
 * out of memory. */
bool cell_flag_baseline(const cell_record *bf16, cell_record *fp8, arena *mem);

/* Writes the derived fields of @c to the JSON row that it was read from. The row must have passed.
 * Returns false when out of memory. */
bool row_store(js *row, const cell_record *c);

#endif
