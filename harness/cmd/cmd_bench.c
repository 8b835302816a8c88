/* cmd_bench.c - `snapmla bench`, and its verb kernel, which is the default. */
#include "harness/cmd/cmd.h"
#include "harness/cmd/kernel_arguments.h"
#include "harness/cmd/print.h"
#include "harness/view/bench_tables.h"

static snap_status run(opt_shared *shared, snap_err *err) {
    results *r = NULL;
    snap_err unprinted = {0};
    bench_kernel_given.cancel = &cmd_cancelled;
    snap_status st = bench_run(&bench_kernel_given, shared->resolved, &r, err);
    if (r) {
        const js *rows = results_section(r, "bench");
        table t = bench_table(rows);
        snap_status printed = print_results(r, shared, &t, st == SNAP_OK ? err : &unprinted);
        st = st == SNAP_OK ? printed : st;
        bench_warn(rows);
        table_release(&t);
    }
    results_free(r);
    return st;
}

#define ABOUT_KERNEL                                                                               \
    "Times one MLA decode step of both arms over a grid of shapes. A cell is timed only\n"         \
    "after its output agrees with an FP64 reference. The two arms take turns in one run,\n"        \
    "with a cold cache. Times are in microseconds: 'us' is the median of the steps, next\n"        \
    "to it are their mean and 99th percentile. The column '% roof' is relative to the\n"           \
    "ceilings, the best rates that any probe reached. The column '% then' is relative to\n"        \
    "the median of short runs of the same probes between the row's own samples. On a\n"            \
    "shared machine, '% then' separates the speed of the kernel from the load of other\n"          \
    "programs.\n"                                                                                  \
    "\n"                                                                                           \
    "With --arm, any kernels are compared in one table: the program's own on several\n"            \
    "backends, and those of plugins and Python files, each with a cache format of its\n"           \
    "own. 'speed-up' is the time of the first arm divided by that of the arm, with its\n"          \
    "95 % interval."

static const opt_command verb_kernel = {
    .name = "bench kernel",
    .summary = "time one MLA decode step of both arms over a grid of shapes",
    .synopsis = "[options]",
    .about = ABOUT_KERNEL,
    .examples = "  snapmla bench kernel --heads 16,128 --batch 8 --context 8192\n"
                "  snapmla bench kernel --config h200-table --out RUN",
    .options = bench_kernel_options,
    .run = run,
    .of = &cmd_bench,
};

static const opt_command *const verbs[] = {&verb_kernel,
                                           &cmd_bench_model,
                                           &cmd_bench_exchange,
                                           &cmd_bench_grading,
                                           &cmd_bench_tokenizer,
                                           &cmd_bench_serving,
                                           NULL};

const opt_command cmd_bench = {
    .name = "bench",
    .summary = "time both arms over a grid of shapes",
    .synopsis = "[VERB] [options]",
    .about = ABOUT_KERNEL,
    .examples = "  snapmla bench --heads 16,128 --batch 8 --context 8192\n"
                "  snapmla bench --config cpu --out RUN\n"
                "  snapmla bench model --model-config deepseek-v2-lite --batch 1,64,max",
    .options = bench_kernel_options,
    .run = run,
    .verbs = verbs,
};
