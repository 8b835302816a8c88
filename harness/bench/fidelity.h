/* fidelity.h - the numerical error of attention with each cache format, compared with FP64
 * attention over the same unquantised numbers.
 *
 * There is one sequence with one query token and `heads` rows. The inputs are BF16 numbers, as
 * activations are, so the format "bf16" loses only by rounding P. Rows of source "reference" come
 * from the FP64 oracle with outputs that are not rounded: the error of the format itself. Rows with
 * a backend's name come from its two arms, whose outputs are BF16. They also contain the error of
 * the implementation. */
#ifndef SNAPMLA_HARNESS_BENCH_FIDELITY_H
#define SNAPMLA_HARNESS_BENCH_FIDELITY_H

#include <signal.h>

#include "harness/bench/grid.h"
#include "harness/bench/numbers.h"
#include "harness/bench/oracle.h"
#include "harness/record/fidelity_record.h"
#include "kernels/format/coded.h"
#include "kernels/format/format.h"

enum { FIDELITY_FORMATS = 64 };

typedef struct {
    cache_format *format;                        /* [FIDELITY_FORMATS], set by fidelity_parse() */
    const coded_format *coded[FIDELITY_FORMATS]; /* instead of a descriptor; NULL: none. `format`
                                                    then has the arithmetic: BF16 attention over
                                                    the rounded numbers */
    int n_format;
    bool distribution[NUMBERS_KINDS];
    int64_t context[GRID_AXIS];
    int n_context;
    int heads, d_c, d_r;
    uint64_t seed;
    mla_backend *backend;                /* NULL = only the reference; borrowed */
    int threads;                         /* for the reference; 0 = all processors */
    const volatile sig_atomic_t *cancel; /* may be NULL */
} fidelity_options;

/* Parses comma-separated lists into @opt, whose widths are set. @formats: names of shipped formats
 * and of coded formats, and paths of files. SNAP_E_USAGE: the message names the wrong part;
 * SNAP_E_NOMEM; errors of cache_format_load(). The caller calls fidelity_release(), also after a
 * failure. */
snap_status fidelity_parse(fidelity_options *opt, const char *formats, const char *distributions,
                           const char *contexts, snap_err *err) SNAP_CHECK_RESULT;
void fidelity_release(fidelity_options *opt);

/* How many rows fidelity_run() emits. */
int fidelity_count(const fidelity_options *opt);

/* Receives a row of the section `fidelity`. The row is borrowed during the call. */
typedef snap_status (*fidelity_emit)(void *ctx, const fidelity_record *row, snap_err *err);

/* Emits all rows. Errors: those of @emit, of the backend and of parallel_create(), SNAP_E_NOMEM,
 * SNAP_E_CANCELLED. */
snap_status fidelity_run(const fidelity_options *opt, fidelity_emit emit, void *ctx,
                         snap_err *err) SNAP_CHECK_RESULT;

#endif
