/* predict_links.h - how long GPUs take to exchange numbers: measured curves of `bench exchange`, or
 * a link with a latency and a bandwidth from configs/links.json.
 *
 * A curve is linear between measured sizes. Below the smallest size it is constant, and above the
 * largest it continues with the bandwidth of the largest. An exchange uses the curve of its own
 * number of ranks. If that number was not measured, it uses the curve of the largest number below
 * it. If there is none, it uses that of the smallest number above it. The time is then that of the
 * measured size at which each link carries as many bytes, so the latency is that of the measured
 * ranks. All GPUs of a node are assumed to be connected by the same switch.
 *
 * As in the engine (generator/local/cuda/sums.h), sums of up to sums_one_shot() bytes, and
 * all-gathers and reduce-scatters of parts of up to SUMS_ONE_SHOT bytes, take the one-shot kernel.
 * NCCL does longer exchanges. The path `step` of `bench exchange` measures these kernels as a step
 * of a model calls them. Each of the three operations has a curve of its own. If that curve was not
 * measured, or only with a number of ranks that comes later in the order above, the operation uses
 * the curve of the path `one_shot`. That path measures an all-reduce. An all-gather or a
 * reduce-scatter with parts of b bytes then takes the time of an all-reduce of b bytes, because
 * each rank reads the same number of bytes from the others. Without these curves, and with a link
 * of configs/links.json, NCCL does all exchanges. Another launch adds the result of a sum or a
 * reduce-scatter of NCCL to the residual stream. It takes the time of its bytes at the measured
 * bandwidth, and that of a launch that moves next to nothing: the shortest exchange of the paths
 * `step` and `one_shot`.
 *
 * The ranks of a replica are in one node of PREDICT_NODE GPUs. The ranks that gather rows are in
 * several nodes if the layout has more GPUs. Then NCCL does all-gathers and reduce-scatters along
 * rings. These assumptions are made: Each byte of other nodes enters a node once. These bytes are
 * divided evenly over the network ports of the exchange's GPUs in this node, one port for each GPU.
 * They cost the latency of the network once, whatever the number of nodes. At the same time, the
 * links inside a node carry the bytes of all other ranks to each GPU.
 *
 * With `all_to_all`, an all-gather or a reduce-scatter may be replaced by an all-to-all of exactly
 * the rows that are needed, which the engine does not have. It is used where it is shorter. Each
 * link inside a node then carries only the share `reach` of the bytes (predict_work.h), in the time
 * of a measured all-to-all. A row goes to another node once, if any rank there needs it, so the
 * network carries the share `node_reach`. The results come back in the same way: a node adds up the
 * outputs of its ranks for a row before it sends them. */
#ifndef SNAPMLA_HARNESS_BENCH_PREDICT_LINKS_H
#define SNAPMLA_HARNESS_BENCH_PREDICT_LINKS_H

#include "harness/bench/predict_work.h"
#include "harness/record/exchange_record.h"

enum { PREDICT_CURVE = 64 };

/* A time with the ends of its interval, in nanoseconds. */
typedef struct {
    double ns, low_ns, high_ns;
} predict_time;

/* A measured size: `bytes` of exchange_record, which counts all parts of an all-gather and of a
 * reduce-scatter. */
typedef struct {
    double bytes;
    predict_time at; /* median, best, 99th percentile */
} curve_point;

typedef struct {
    curve_point of[PREDICT_CURVE]; /* ascending */
    int n;                         /* 0 = not measured */
} exchange_curve;

/* The kinds of curves: an all-reduce in the one-shot kernel that stores its sum, operations of
 * NCCL, and the one-shot kernels in the form of a step. */
typedef enum {
    CURVE_ONE_SHOT,
    CURVE_ALL_REDUCE,
    CURVE_ALL_GATHER,
    CURVE_REDUCE_SCATTER,
    CURVE_ALL_TO_ALL,
    CURVE_STEP_SUM,
    CURVE_STEP_GATHER,
    CURVE_STEP_SCATTER,
    CURVE_KINDS
} curve_kind;

typedef struct {
    char name[32];
    double latency_us[3], gb_s[3]; /* best, expected, worst; GB/s in one direction for one GPU */
} predict_link;

typedef struct {
    exchange_curve curves[CURVE_KINDS][PREDICT_NODE + 1]; /* inside a node, by number of ranks */
    double read_rate; /* bytes/s of the GPU's memory, for the kernel that adds a sum of NCCL to the
                         residual stream */
    bool has_link;    /* the link replaces the curves */
    predict_link link, network;
    bool all_to_all; /* rows may also go only to those ranks that need them */
} predict_links;

/* Adds a row to the curve that it belongs to. Only rows of 2 to PREDICT_NODE ranks inside a graph
 * are used, and rows of FP32 numbers replace rows of BF16 numbers of the same size. */
void predict_links_add(predict_links *l, const exchange_record *row);

/* Finds a link in the text of configs/links.json. SNAP_E_USAGE, which lists the names, if there is
 * no such link. SNAP_E_INPUT: the text is malformed. */
snap_status predict_link_find(predict_link *out, const char *name, const js *links,
                              snap_err *err) SNAP_CHECK_RESULT;

/* The time of all exchanges of a step. SNAP_E_USAGE: neither a curve nor a link for one of them. */
snap_status predict_links_time(const predict_links *l, const predict_work *w,
                               const predict_layout *layout, predict_time *out,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
