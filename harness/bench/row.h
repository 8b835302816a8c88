/* row.h - makes the row of a cell for the result file's section `bench`, in two steps. The measured
 * values go into the journal at once. The values that follow from them and the ceilings are derived
 * after the sweep, when the ceilings are final. */
#ifndef SNAPMLA_HARNESS_BENCH_ROW_H
#define SNAPMLA_HARNESS_BENCH_ROW_H

#include "base/json.h"
#include "harness/bench/challenge.h"
#include "harness/bench/check_output.h"
#include "harness/measure/env.h"
#include "harness/measure/gpu.h"
#include "harness/measure/paired_probes.h"
#include "harness/measure/paired_ratio.h"
#include "harness/measure/stop.h"
#include "harness/record/cell.h"
#include "kernels/ceilings.h"

enum { ROW_KEY = 512 };

typedef enum { ROW_PASSED, ROW_FAILED, ROW_SKIPPED, ROW_ERROR } row_status;

/* Values that all cells of an arm share; strings are borrowed. */
typedef struct {
    const char *name;     /* name of a named arm; NULL: the arm is named after its kind */
    const char *options;  /* options of a named arm, as the user gave them */
    const char *ceilings; /* for a named arm: the arm whose ceilings it shares, or its own name */
    const arm_format *format; /* cache format of a named arm; NULL: that of mla.h */
    mla_backend_info backend;
    const char *kernel_hash; /* code_hash_of() without a kernel; NULL = unknown */
    const char *distribution;
    const challenge *challenge; /* NULL = none; its cell follows from the shape's lengths */
    const char *challenge_hash; /* challenge_data_hash() */
    bool sustained;
} row_context;

typedef struct {
    bench_shape shape;
    bench_kind kind;
    bench_scope scope;
    row_status status;
    const char *reason; /* why the status is not ROW_PASSED; borrowed */
    const char *kernel; /* the kernel that ran, and the hash of its machine code; kernel NULL =
                           those of row_context */
    const char *kernel_hash;
    const char *cold;            /* "rotate", "flush" or "none" */
    bool not_captured;           /* bench_arm_is_captured() was false */
    bool host_limited;           /* bench_arm_is_host_limited() was true */
    bool without_lse;            /* bench_arm_has_lse() was false */
    const verified *verdict;     /* NULL if nothing was checked */
    const stop_rule *timing;     /* NULL only if the status is not ROW_PASSED; else it has
                                    samples */
    const paired_probes *probes; /* rates probed between the samples; NULL or empty if there were no
                                    probes */
    env_state before, after;
    gpu_state gpu_before, gpu_after; /* unknown without an NVIDIA device */
    uint64_t gpu_during;             /* reasons for a reduced clock between the samples */
    double power_w;                  /* mean power while the steps ran, in watts; NAN = not
                                        measured */
    const char *energy_source;       /* for mode "sustained": the energy sensors; NULL = none */
    const char *energy_missing;      /* for mode "sustained": why power_w is NAN; else NULL */
    const char *baseline;            /* for a named arm: the arm that it is compared with */
    paired_ratio against;            /* the comparison; `ratio` NAN = none */
} row_measured;

/* The row as JSON, without the derived fields; the caller owns it. NULL: out of memory. */
js *row_json(const row_context *ctx, const row_measured *m);

/* The key of the cell in the journal: "fp8 served H16 s1 b8 c8192 d512+64 mla", the distribution of
 * the lengths if there is one, the backend, its kernel and the first 16 digits of
 * row_context.kernel_hash. Sustained cells have "sustained" after the scope. The key of a named arm
 * begins with its name. */
void row_key(const row_context *ctx, const bench_shape *s, bench_kind k, bench_scope scope,
             char out[ROW_KEY]);

/* ---- rows as structs ---- */

/**
 * cell_derive - compute the derived fields of a row that passed
 *
 * @mem: owns the new list of flags
 *
 * Sets the fields of CELL_DERIVED from the shape, the median, the energy, the probed rates and the
 * ceilings. Sets the flag below_floor if the cache was cold and the median is below the floor, and
 * clears it otherwise. Does nothing for a row that did not pass. Call it again when a ceiling
 * rises. SNAP_E_NOMEM. SNAP_E_INPUT: a row of a journal with a bad arm, shape, median,
 * lengths or format.
 */
snap_status cell_derive(cell_record *c, const mla_ceilings *ceilings, arena *mem,
                        snap_err *err) SNAP_CHECK_RESULT;

/* Raises the ceilings to the best rates that were probed between the samples of the row. */
void cell_raise(const cell_record *c, mla_ceilings *to);

/* Speed-up of FP8 over BF16, the ratio of the medians; NAN unless both rows have one. */
double cell_speedup(const cell_record *bf16, const cell_record *fp8);

/* Sets the flag weak_baseline of the FP8 row if the speed-up exceeds the ratio of the two floors,
 * and clears it otherwise: a BF16 kernel near its floor would not allow that. Both rows must be
 * derived. Returns false when out of memory. */
bool cell_flag_baseline(const cell_record *bf16, cell_record *fp8, arena *mem);

/* Writes the performance and the flags of @c to the JSON row from which @c was read. Returns false
 * when out of memory. */
bool row_store(js *row, const cell_record *c);

#endif
