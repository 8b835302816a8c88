/* fidelity.h - the numerical error of attention in each cache format, against FP64 attention over
 * the same unquantised numbers.
 *
 * One sequence, one query token, `heads` rows. The numbers are bf16, as activations are, so BF16
 * itself errs by the rounding of P only. Formats come from the FP64 oracle (source "reference":
 * what a format costs, whatever runs it; outputs not rounded) and from a backend's two arms (source:
 * its name, outputs bf16: what this implementation adds). */
#ifndef SNAPMLA_HARNESS_BENCH_FIDELITY_H
#define SNAPMLA_HARNESS_BENCH_FIDELITY_H

#include <signal.h>

#include "base/json.h"
#include "harness/bench/grid.h"
#include "harness/bench/numbers.h"
#include "harness/bench/oracle.h"

/* "bf16", "snapmla", "A" .. "F", and "noPV": snapmla's cache with P in bf16 */
enum { FIDELITY_CONFIGS = ORACLE_CONFIGS };

typedef struct {
    bool config[FIDELITY_CONFIGS], distribution[NUMBERS_KINDS];
    int64_t context[GRID_AXIS];
    int n_context;
    int heads, d_c, d_r;
    uint64_t seed;
    mla_backend *backend;                /* NULL = reference only; borrowed */
    int threads;                         /* of the reference; 0 = all */
    const volatile sig_atomic_t *cancel; /* may be NULL */
} fidelity_options;

/* Comma lists into @opt; SNAP_E_USAGE naming the part that is wrong. */
snap_status fidelity_parse(fidelity_options *opt, const char *configs, const char *distributions,
                           const char *contexts, snap_err *err) SNAP_CHECK_RESULT;

/* Rows that fidelity_run() will emit. */
int fidelity_count(const fidelity_options *opt);

/* Takes a row of the result file's `fidelity` section; the row is the callee's. */
typedef snap_status (*fidelity_emit)(void *ctx, js *row, snap_err *err);

/* Errors: those of the callback and the backend, SNAP_E_NOMEM, SNAP_E_CANCELLED. */
snap_status fidelity_run(const fidelity_options *opt, fidelity_emit emit, void *ctx,
                         snap_err *err) SNAP_CHECK_RESULT;

#endif
