/* predict_links.h - how long GPUs take to exchange numbers: measured curves of `bench exchange`, or
 * a link with a latency and a bandwidth from configs/links.json.
 *
 * A curve is linear between measured sizes. Below the smallest it is constant, and above the
 * largest it continues with the bandwidth of the largest. For another number of ranks than the
 * measured one, the time is that of the measured size at which each link carries as many bytes. So
 * the latency is that of the measured ranks. All GPUs of a node are taken to be connected by the
 * same switch.
 *
 * Exchanges of more than PREDICT_NODE ranks leave the node. The part of an all-to-all that goes to
 * other nodes uses the network, and both parts run at the same time. */
#ifndef SNAPMLA_HARNESS_BENCH_PREDICT_LINKS_H
#define SNAPMLA_HARNESS_BENCH_PREDICT_LINKS_H

#include "harness/bench/predict_work.h"
#include "harness/record/exchange_record.h"

enum { PREDICT_NODE = 8 /* GPUs of one node */, PREDICT_CURVE = 64 };

/* A time with the ends of its interval, in nanoseconds. */
typedef struct {
    double ns, low_ns, high_ns;
} predict_time;

typedef struct {
    double bytes;
    predict_time at; /* median, best, 99th percentile */
} curve_point;

typedef struct {
    curve_point of[PREDICT_CURVE]; /* ascending */
    int n;                         /* 0 = not measured */
    int ranks;
} exchange_curve;

typedef struct {
    char name[32];
    double latency_us[3], gb_s[3]; /* best, expected, worst; GB/s in one direction for one GPU */
} predict_link;

typedef struct {
    exchange_curve one_shot, all_reduce, all_gather, all_to_all; /* inside a node */
    double read_rate; /* bytes/s of the GPU's memory, for the kernel that adds a sum of NCCL to the
                         residual stream */
    bool has_link;    /* the link replaces the curves */
    predict_link link, network;
} predict_links;

/* Adds a row to the curve that it belongs to. Only rows inside a graph are used, and rows of FP32
 * numbers replace rows of BF16 numbers of the same size. */
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
