/* gate.h - the options that several verbs of `snapmla gate` share, and the output of their
 * verdicts. */
#ifndef SNAPMLA_HARNESS_CMD_GATE_H
#define SNAPMLA_HARNESS_CMD_GATE_H

#include "harness/bench/grid.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/device_table.h"
#include "harness/gate/compare_builds.h"
#include "harness/record/results.h"

/* ---- what is timed: gate run, gate selftest ---- */

typedef struct {
    bench_grid_text grid;
    const char *distribution;
    bool cold;
    int64_t seed;
    device_options device;
} gate_timing;

#define GATE_TIMING_DEFAULTS                                                                       \
    {                                                                                              \
        .grid = {.arms = "bf16,fp8",                                                               \
                 .scopes = "kernel",                                                               \
                 .heads = "1,16,128",                                                              \
                 .s_q = "1",                                                                       \
                 .batch = "1",                                                                     \
                 .context = "1024",                                                                \
                 .d_c = 512,                                                                       \
                 .d_r = 64},                                                                       \
        .distribution = "normal", .seed = 1, .device = {                                           \
            .backend = "auto",                                                                     \
            .isa = "auto",                                                                         \
            .threads = 1                                                                           \
        }                                                                                          \
    }

/* clang-format off */
#define GATE_TIMING_OPTIONS(t)                                                                     \
    {.type = OPT_GROUP, .help = "What is timed (lists separated by commas)"},                      \
    {OPT_STR, "arms", 0, &(t).grid.arms, "LIST", "precisions: bf16, fp8", 0, 0},                   \
    {OPT_STR, "scope", 0, &(t).grid.scopes, "LIST",                                                \
     "kernel: attention alone; served: also quantising, appending to the cache and scheduling",    \
     0, 0},                                                                                        \
    {OPT_STR, "heads", 0, &(t).grid.heads, "LIST", "numbers of query heads, 1..128", 0, 0},        \
    {OPT_STR, "s-q", 0, &(t).grid.s_q, "LIST",                                                     \
     "numbers of query tokens per sequence, 1..4", 0, 0},                                          \
    {OPT_STR, "batch", 0, &(t).grid.batch, "LIST", "numbers of sequences", 0, 0},                  \
    {OPT_STR, "context", 0, &(t).grid.context, "LIST",                                             \
     "numbers of cached tokens per sequence", 0, 0},                                               \
    {OPT_STR, "shapes", 0, &(t).grid.shapes, "LIST",                                               \
     "shapes as H/s_q/batch/context, instead of the four lists above", 0, 0},                      \
    {OPT_STR, "distribution", 0, &(t).distribution, "NAME",                                        \
     "random input: normal, mla, sink or adversarial, as in 'snapmla bench'", 0, 0},               \
    {OPT_FLAG, "cold", 0, &(t).cold, NULL,                                                         \
     "cpu: time every step on another copy of the data, so that the cache is cold; this takes "    \
     "longer, and other programs' use of memory changes the times more; a GPU always flushes "     \
     "its caches", 0, 0},                                                                          \
    {OPT_INT, "seed", 0, &(t).seed, "N", "seed of the random numbers", 0, 1e15}

/* ---- deciding: gate check, gate run, gate selftest ---- */

typedef struct {
    double share_pct, us, alpha_pct;
    int64_t sessions, looks;
} gate_deciding;

#define GATE_DECIDING_DEFAULTS                                                                     \
    {.share_pct = 2, .us = 0.5, .alpha_pct = 5, .sessions = 12, .looks = 3}

#define GATE_DECIDING_OPTIONS(d)                                                                   \
    {.type = OPT_GROUP, .help = "Deciding"},                                                       \
    {OPT_NUM, "threshold", 0, &(d).share_pct, "PCT",                                               \
     "largest slow-down that counts as no change, in percent", 0, 900},                            \
    {OPT_NUM, "threshold-us", 0, &(d).us, "US",                                                    \
     "the same in microseconds; the larger of the two thresholds is used", 0, 1e9},                \
    {OPT_NUM, "alpha", 0, &(d).alpha_pct, "PCT",                                                   \
     "probability of a false alarm of the whole gate, in percent", 1e-4, 49}

/* More options of the group "Deciding", which only gate run and gate selftest have. */
#define GATE_SESSIONS_OPTIONS(d)                                                                   \
    {OPT_INT, "sessions", 0, &(d).sessions, "N",                                                   \
     "sessions of the first test; a session starts both programs anew and times every cell; "      \
     "too few to reach significance at the last test are refused",                                 \
     5, 512},                                                                                      \
    {OPT_INT, "looks", 0, &(d).looks, "N",                                                         \
     "maximum number of tests per cell; before each further test of an undecided cell the "        \
     "number of its sessions is doubled", 1, 7}

/* ---- where verdicts go ---- */

typedef struct {
    const char *out, *junit, *markdown, *code_quality, *annotations;
} gate_output;

#define GATE_OUTPUT_DEFAULTS {.annotations = "auto"}

#define GATE_OUT_OPTION(o)                                                                         \
    {OPT_STR, "out", 'o', &(o).out, "PATH",                                                        \
     "write the verdicts and all samples to this .json file or run folder", 0, 0}

#define GATE_OUTPUT_OPTIONS(o)                                                                     \
    {.type = OPT_GROUP, .help = "Output"},                                                         \
    GATE_OUT_OPTION(o),                                                                            \
    {OPT_STR, "junit", 0, &(o).junit, "FILE", "write the verdicts as JUnit XML", 0, 0},            \
    {OPT_STR, "markdown", 0, &(o).markdown, "FILE", "write a summary as Markdown", 0, 0},          \
    {OPT_STR, "code-quality", 0, &(o).code_quality, "FILE",                                        \
     "write the verdicts as a GitLab code quality report", 0, 0},                                  \
    {OPT_STR, "annotations", 0, &(o).annotations, "KIND",                                          \
     "github: print ::error lines to standard error and append to the summary of the job; none; "  \
     "auto: github if the variable GITHUB_ACTIONS is true", 0, 0}
/* clang-format on */

#define GATE_EXITS                                                                                 \
    "0 no regression, 1 slower, 2 usage or configuration, 3 runtime, 4 inconclusive, 5 worse in "  \
    "quality, 6 environment invalid, 7 wrong result"

gate_limits gate_limits_of(const gate_deciding *d);

/* The options of gate_run(). The caller adds the two arms, and sets `ctx` to a term_progress. The
 * result borrows @t and @grid. */
gate_run_options gate_run_options_of(const gate_timing *t, const gate_deciding *d,
                                     const bench_grid *grid);

/* Adds @rows to the section `verdicts` of @r, saves @r if @o names a result file, prints the
 * result, and writes the other files that @o names. The caller keeps @rows. Returns
 * verdict_status() of the rows, or the error of writing. */
snap_status gate_finish(results *r, const js *rows, const gate_output *o, const opt_shared *shared,
                        snap_err *err) SNAP_CHECK_RESULT;

#endif
