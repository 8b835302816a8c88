/* sweep_inside.h - the state of a sweep, for its source files. */
#ifndef SNAPMLA_HARNESS_BENCH_SWEEP_INSIDE_H
#define SNAPMLA_HARNESS_BENCH_SWEEP_INSIDE_H

#include "harness/bench/sweep.h"
#include "harness/measure/code_hash.h"
#include "harness/measure/energy.h"

typedef struct {
    bench_arm *arm; /* NULL if the arm cannot run */
    verified verdict;
    stop_rule timing;
    row_status status; /* status in the current scope; if `arm` is NULL, in all scopes */
    snap_err why;
    double power_w;
    bool host_limited; /* bench_arm_is_host_limited() after timing */
} cell;

/* The kernel that an arm runs, and the hash of its code. The hash is kept while the kernel stays
 * the same, because computing it may read the whole program file. */
typedef struct {
    const char *kernel; /* NULL = lab_plan_kernel() names none */
    char hash[HASH_HEX];
    bool known;
} kernel_code;

/* One arm, over all shapes. */
typedef struct lane lane;
struct lane {
    sweep_arm of; /* `name` is NULL for an arm of the grid */
    row_context context;
    numbers from;
    gpu *device;             /* NULL = no NVIDIA device */
    const lane *same_device; /* the arm that has opened `device`; NULL = this one */
    energy_meter *meter;     /* NULL for an arm without a backend */
    kernel_code code;
    cell cell;            /* the arm's cell for the current shape */
    double ns_per_work;   /* least time of a step so far, for each row and token; 0 = none timed */
    paired_probes probes; /* probes of the current scope. All arms whose `rates` is this arm use
                             them */
};

typedef struct {
    const sweep_options *opt;
    numbers from; /* the random numbers on the host, which all arms share */
    js *rows;
    bench_shape shape;
    int32_t lengths[BENCH_MAX_BATCH]; /* lengths of the current shape's sequences, if they are drawn
                                         (opt->lengths) */
    lane *lanes;                      /* [n] */
    int n;
    packed_references known; /* of the current shape */
    bool flush;              /* the backends' caches are flushed before each step */
    const char *cold; /* how steps of the current shape start with a cold cache: "flush", "rotate"
                         or "none" */
    int done;
    int64_t started; /* clock_now_ns() */
} sweep;

/* Notes how fast the arms computed the current shape and scope. */
void sweep_note_speed(sweep *s);

/* Whether the current shape and scope would exceed the time limit. If so, *why has the message. */
bool sweep_is_late(const sweep *s, snap_err *why);

/* The state of the machine and of each arm's device at one moment. */
typedef struct {
    env_state env;
    gpu_state gpu[SWEEP_ARMS];
} moment;

void sweep_take_moment(const sweep *s, moment *m);

/* Notes the kernel that an arm runs, or NULL, and finds the hash of its code: that of the user's
 * file if the arm has one, else that of the program's device code. */
void sweep_find_code(lane *l, const char *kernel);

/* Whether an arm has a row in the scope. */
bool sweep_is_requested(const lane *l, bench_scope scope);

/* Adds the row of arm @i for the current shape, and keeps it for a resumed run. Errors: those of
 * `keep`, SNAP_E_NOMEM. */
snap_status sweep_add_row(sweep *s, int i, bench_scope scope, const moment *before,
                          const moment *after, snap_err *err) SNAP_CHECK_RESULT;

/* Whether an earlier run has the rows in the scope of all arms that could be opened. Arms are timed
 * alternately, so the rows of a scope are either all reused or all measured again. */
bool sweep_scope_found(const sweep *s, bench_scope scope);

/* Adds those rows, and a row with the error for each arm that could not be opened. SNAP_E_NOMEM. */
snap_status sweep_take_over(sweep *s, bench_scope scope, snap_err *err) SNAP_CHECK_RESULT;

#endif
