/* bench_exchange.c - `snapmla bench exchange` */
#include "harness/cmd/cmd.h"
#include "harness/cmd/exchange_arguments.h"

static const char *devices;
static exchange_arguments given = {
    .options = {.operations = "all_reduce,all_gather,reduce_scatter,all_to_all",
                .sizes = "1024,4096,16384,65536,262144,1048576,4194304,16777216,"
                         "67108864,268435456,1073741824",
                .type = "bf16",
                .seconds = 0.1}};

static const opt options[] = {
    {.type = OPT_GROUP, .help = "What"},
    {OPT_STR, "devices", 0, &devices, "LIST",
     "numbers of the GPUs of this machine, one for each rank; the program starts the ranks itself, "
     "unless a launcher such as mpirun or srun has started it",
     0, 0},
    {OPT_STR, "operations", 0, &given.options.operations, "LIST",
     "all_reduce, all_gather, reduce_scatter, all_to_all", 0, 0},
    {OPT_STR, "sizes", 0, &given.options.sizes, "LIST",
     "sizes in bytes, as nccl-tests count them: of the larger one of the two buffers of a rank", 0,
     0},
    {OPT_STR, "type", 0, &given.options.type, "NAME", "type of the numbers: bf16, fp32", 0, 0},
    {.type = OPT_GROUP, .help = "Measuring"},
    {OPT_NUM, "min-time", 0, &given.options.seconds, "S",
     "about the measured time of one row, in seconds; a row has 20 to 512 samples, or fewer if "
     "they would take more than 4 seconds",
     0, 60},
    {.type = OPT_GROUP, .help = "Output"},
    {OPT_STR, "out", 'o', &given.out, "PATH",
     "write the result file: a .json file or a run's folder", 0, 0},
    {.type = OPT_END},
};

static snap_status start_ranks(snap_err *err) {
    if (given.devices.n < 2)
        return err_set(err, SNAP_E_USAGE,
                       "bench exchange needs at least two GPUs: --devices 0,1, or a launcher that "
                       "starts at least two processes");
    return rank_processes_run(given.devices.n, err);
}

static snap_status run(opt_shared *shared, snap_err *err) {
    snap_status st;
    rank_place place;
    TRY(exchange_bench_plan(&given.plan, &given.options, err));
    TRY(rank_devices_read(&given.devices, devices, err));
    TRY(rank_place_read(&place, err));
    st = place.size == 0 ? start_ranks(err) : exchange_rank(&given, shared, &place, err);
cleanup:
    return st;
}

const opt_command cmd_bench_exchange = {
    .name = "bench exchange",
    .summary = "time the exchange of numbers between several GPUs",
    .synopsis = "--devices LIST [options]",
    .about = "Times all-reduce, all-gather, reduce-scatter and all-to-all between GPUs, through\n"
             "NCCL, launched one by one and inside a CUDA graph. For messages of up to 2 MiB\n"
             "on one machine, also times an all-reduce over peer memory in one launch\n"
             "('one_shot'). With --type fp32, also times all-reduce, all-gather and\n"
             "reduce-scatter over peer memory in the form that a step of 'bench model' uses\n"
             "('step'): a sum is added to numbers of the rank, and on compute capability 9.0\n"
             "or above a launch may overlap the end of the previous one. There, 2 MiB is the\n"
             "limit on the bytes that a rank sends to each other rank. 'bench model --predict'\n"
             "reads these rows.\n"
             "\n"
             "Each rank is a process with one GPU. A row is timed only if every number of the\n"
             "result is right before, and shown only if it is right afterwards.\n"
             "\n"
             "A sample is the longest time of all ranks. In a graph, it is the time of the\n"
             "graph divided by its operations. 'GB/s' is the size divided by the median time,\n"
             "and 'bus GB/s' is what each link carries, both as nccl-tests define them.\n"
             "\n"
             "NCCL is loaded when the command runs: libnccl.so.2, or the file that the\n"
             "environment variable SNAPMLA_NCCL names. Launchers are recognised by variables:\n"
             "RANK, WORLD_SIZE, LOCAL_RANK (torchrun), or those of Open MPI, MPICH and srun.\n"
             "MASTER_ADDR is the host of rank 0, and MASTER_PORT its port (29500). If one rank\n"
             "fails, all end within 30 seconds, and the message names the rank.",
    .examples = "  snapmla bench exchange --devices 0,1 --out RUN\n"
                "  snapmla bench exchange --devices 0,1 --operations all_reduce --sizes 16384\n"
                "  mpirun -n 16 --hostfile HOSTS -x MASTER_ADDR=node1 snapmla bench exchange\n"
                "  MASTER_ADDR=node1 srun -n 16 --kill-on-bad-exit snapmla bench exchange",
    .options = options,
    .run = run,
    .of = &cmd_bench,
};
