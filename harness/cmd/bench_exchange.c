/* bench_exchange.c - `snapmla bench exchange` */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/term.h"
#include "generator/local/ranks/launch.h"
#include "harness/bench/exchange_bench.h"
#include "harness/bench/grid.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/measure/gpu.h"
#include "harness/record/device_results.h"
#include "harness/view/bench_tables.h"

enum { kMostDevices = 64 };
static const double kGrace = 8; /* seconds from the end of one rank; the others end earlier */

static const char *devices, *out;
static exchange_bench_options o = {.operations = "all_reduce,all_gather,reduce_scatter,all_to_all",
                                   .sizes = "1024,4096,16384,65536,262144,1048576,4194304,16777216,"
                                            "67108864,268435456,1073741824",
                                   .type = "bf16",
                                   .seconds = 0.1};

static const opt options[] = {
    {.type = OPT_GROUP, .help = "What"},
    {OPT_STR, "devices", 0, &devices, "LIST",
     "numbers of the GPUs of this machine, one for each rank; the program starts the ranks itself, "
     "unless a launcher such as mpirun or srun has started it",
     0, 0},
    {OPT_STR, "operations", 0, &o.operations, "LIST",
     "all_reduce, all_gather, reduce_scatter, all_to_all", 0, 0},
    {OPT_STR, "sizes", 0, &o.sizes, "LIST",
     "sizes in bytes, as nccl-tests count them: of the larger one of the two buffers of a rank", 0,
     0},
    {OPT_STR, "type", 0, &o.type, "NAME", "type of the numbers: bf16, fp32", 0, 0},
    {.type = OPT_GROUP, .help = "Measuring"},
    {OPT_NUM, "min-time", 0, &o.seconds, "S",
     "about the measured time of one row, in seconds; a row has 20 to 512 samples, or fewer if "
     "they would take more than 4 seconds",
     0, 60},
    {.type = OPT_GROUP, .help = "Output"},
    {OPT_STR, "out", 'o', &out, "PATH", "write the result file: a .json file or a run's folder", 0,
     0},
    {.type = OPT_END},
};

typedef struct {
    int at[kMostDevices];
    int n; /* 0 = not given */
} device_list;

static snap_status read_devices(device_list *list, snap_err *err) {
    int64_t numbers[kMostDevices];
    *list = (device_list){0};
    if (!devices)
        return SNAP_OK;
    snap_status st =
        bench_parse_list(devices, "--devices", 0, 1023, numbers, kMostDevices, &list->n, err);
    for (int i = 0; i < list->n && st == SNAP_OK; i++)
        list->at[i] = (int)numbers[i];
    return st;
}

static bool has_cuda(void) {
    for (const char *const *name = mla_backend_list(); *name; name++)
        if (strcmp(*name, "cuda") == 0)
            return true;
    return false;
}

/* ---- the launcher ---- */

/* The arguments of this process, from /proc. They point into @text. */
static snap_status read_arguments(buf *text, char ***argv, snap_err *err) {
    size_t n = 0;
    snap_status st = fs_read("/proc/self/cmdline", text, err);
    *argv = NULL;
    if (st != SNAP_OK)
        return st;
    for (size_t i = 0; i < text->len; i++)
        n += text->data[i] == '\0';
    char **list = malloc((n + 1) * sizeof *list);
    if (!list)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the arguments of a rank");
    char *at = text->data;
    for (size_t i = 0; i < n; i++, at += strlen(at) + 1)
        list[i] = at;
    list[n] = NULL;
    *argv = list;
    return SNAP_OK;
}

static snap_status launch(const device_list *list, snap_err *err) {
    buf text = {0};
    char **argv = NULL;
    launch_options how = {.size = list->n, .grace_s = kGrace, .cancel = &cmd_cancelled};
    if (list->n < 2)
        return err_set(err, SNAP_E_USAGE,
                       "bench exchange needs at least two GPUs: --devices 0,1, or a launcher that "
                       "sets RANK and WORLD_SIZE");
    if (!has_cuda())
        return err_set(err, SNAP_E_UNSUPPORTED, "this build has no CUDA");
    snap_status st = read_arguments(&text, &argv, err);
    if (st == SNAP_OK)
        st = launch_ranks(&how, "/proc/self/exe", argv, err);
    free(argv);
    buf_release(&text);
    return st;
}

/* ---- a rank ---- */

/* Ends a rank without a message of its own if the launcher prints that of the group. */
static void leave_to_launcher(const snap_err *err) {
    if (launch_report(err)) {
        (void)fflush(NULL);
        _exit(err_exit_code(err->code));
    }
}

/* The main thread does not return, for example because it waits for the GPU for ever. */
static void end_stuck_rank(const snap_err *why) {
    leave_to_launcher(why);
    (void)fprintf(stderr, "snapmla: %s\n", why->text);
    _exit(err_exit_code(why->code));
}

static snap_status write_facts(buf *facts, snap_err *err) {
    char executable[HASH_HEX];
    snap_status st = hash_file("/proc/self/exe", executable, err);
    if (st != SNAP_OK)
        return st;
    (void)buf_printf(facts, "program=%s (%s)\nexecutable=%.16s\n", results_program_version(),
                     results_program_commit(), executable);
    (void)buf_printf(facts, "operations=%.200s\nsizes=%.1000s\ntype=%.20s\nmin-time=%g\n",
                     o.operations, o.sizes, o.type, o.seconds);
    return buf_check(facts, "the facts to compare", err);
}

static snap_status save(const opt_shared *shared, const exchange_bench *b, results **r,
                        snap_err *err) {
    snap_status st;
    char kernel[32];
    gpu *g = NULL;
    (void)snprintf(kernel, sizeof kernel, "nccl %d", b->info.nccl);
    TRY(results_new(r, "bench", shared->resolved, 0, err));
    TRY(results_set_backend(*r, "cuda", b->info.device, kernel, 0, err));
    g = gpu_open(b->info.pci);
    if (g)
        TRY(results_set_gpu(*r, gpu_json(g), err));
    for (int i = 0; i < b->n; i++)
        TRY(results_add(*r, "exchange", record_write(&exchange_type, &b->rows[i]), err));
    TRY(out ? results_save_run(*r, out, err) : SNAP_OK);
cleanup:
    gpu_close(g);
    return st;
}

/* On rank 0 only. */
static snap_status show(opt_shared *shared, const exchange_bench *b, snap_err *err) {
    results *r = NULL;
    table t = exchange_table(b->rows, b->n);
    snap_status st = save(shared, b, &r, err);
    if (st == SNAP_OK)
        st = print_results(r, shared, &t, err);
    if (st == SNAP_OK && b->info.one_shot_bytes == 0)
        term_warn("no one-shot all-reduce: %s", b->info.why_not);
    if (st == SNAP_OK && b->wrong)
        st = err_set(err, SNAP_E_WRONG, "%d of %d rows had a wrong result", b->wrong, b->n);
    table_release(&t);
    results_free(r);
    return st;
}

static snap_status choose_device(exchange_options *x, const rank_place *place,
                                 const device_list *list, snap_err *err) {
    x->device = -1;
    x->local_rank = place->local_rank;
    if (!list->n)
        return SNAP_OK;
    if (place->local_rank < 0 || place->local_rank >= list->n)
        return err_set(err, SNAP_E_USAGE,
                       "--devices lists %d GPUs, and the number of this rank on its machine is %d",
                       list->n, place->local_rank);
    x->device = list->at[place->local_rank];
    return SNAP_OK;
}

/* Joins the group and measures. All ranks have left the group when it returns. */
static snap_status measure(const rank_place *place, const device_list *list,
                           const exchange_plan *plan, exchange_bench *b, snap_err *err) {
    snap_status st;
    buf facts = {0};
    ranks *group = NULL;
    exchange *x = NULL;
    ranks_options how = ranks_defaults;
    exchange_options of = {.most_bytes = exchange_bench_bytes(plan)};
    how.on_stuck = end_stuck_rank;
    how.cancel = &cmd_cancelled;
    TRY(write_facts(&facts, err));
    TRY(ranks_join(&group, place, buf_str(&facts), &how, err));
    of.group = group;
    TRY(choose_device(&of, place, list, err));
    TRY(exchange_cuda_open(&x, &of, err));
    TRY(exchange_bench_run(plan, x, group, &cmd_cancelled, b, err));
cleanup:
    if (st != SNAP_OK && group)
        ranks_fail(group, err);
    if (x)
        x->ops->close(x);
    if (group && st == SNAP_OK)
        st = ranks_close(group, err);
    else if (group && ranks_close(group, NULL) != SNAP_OK)
        st = err->code;
    buf_release(&facts);
    return st;
}

static snap_status measure_and_show(opt_shared *shared, const rank_place *place,
                                    const device_list *list, const exchange_plan *plan,
                                    snap_err *err) {
    if (place->size < 2)
        return err_set(err, SNAP_E_USAGE, "bench exchange needs at least two ranks");
    exchange_bench *b = calloc(1, sizeof *b);
    if (!b)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a benchmark");
    snap_status st = measure(place, list, plan, b, err);
    if (st == SNAP_OK && place->rank == 0)
        st = show(shared, b, err);
    free(b);
    return st;
}

static snap_status run_rank(opt_shared *shared, const rank_place *place, const device_list *list,
                            const exchange_plan *plan, snap_err *err) {
    snap_status st = measure_and_show(shared, place, list, plan, err);
    st = fault_of_process(st, err);
    if (st != SNAP_OK)
        leave_to_launcher(err);
    return st;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    snap_status st;
    rank_place place;
    device_list list;
    exchange_plan plan;
    TRY(exchange_bench_plan(&plan, &o, err));
    TRY(read_devices(&list, err));
    TRY(rank_place_read(&place, err));
    return place.size == 0 ? launch(&list, err) : run_rank(shared, &place, &list, &plan, err);
cleanup:
    return st;
}

const opt_command cmd_bench_exchange = {
    .name = "bench exchange",
    .summary = "time the exchange of numbers between several GPUs",
    .synopsis = "--devices LIST [options]",
    .about = "Times all-reduce, all-gather, reduce-scatter and all-to-all between GPUs, through\n"
             "NCCL, launched one by one and inside a CUDA graph. For messages of up to 256 KiB\n"
             "on one machine, also times an all-reduce over peer memory in one launch\n"
             "('one_shot'). Each rank is a process with one GPU. A row is timed only if every\n"
             "number of the result is right before, and shown only if it is right afterwards.\n"
             "\n"
             "A sample is the longest time of all ranks. In a graph, it is the time of the\n"
             "graph divided by its operations. 'GB/s' is the size divided by the median time,\n"
             "and 'bus GB/s' is what each link carries, both as nccl-tests define them.\n"
             "\n"
             "NCCL is loaded when the command runs: libnccl.so.2, or the file that the\n"
             "environment variable SNAPMLA_NCCL names. Launchers are recognised by variables:\n"
             "RANK, WORLD_SIZE, LOCAL_RANK, or those of Open MPI, MPICH and srun. MASTER_ADDR is\n"
             "the host of rank 0, and MASTER_PORT its port (29500). If one rank fails, all end\n"
             "within 30 seconds, and the message names the rank.",
    .examples = "  snapmla bench exchange --devices 0,1 --out RUN\n"
                "  snapmla bench exchange --devices 0,1 --operations all_reduce --sizes 16384\n"
                "  MASTER_ADDR=node1 mpirun -n 16 snapmla bench exchange",
    .options = options,
    .run = run,
    .of = &cmd_bench,
};
