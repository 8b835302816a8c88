/* One request of a serving benchmark: what was asked for, and what became of it. */
#ifndef SNAPMLA_HARNESS_SERVING_REQUEST_H
#define SNAPMLA_HARNESS_SERVING_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

/* Times are seconds since the start of the request's block, by CLOCK_MONOTONIC. */
typedef struct {
    int arm;   /* 0 = the baseline */
    int point; /* number of the load point in the sweep */
    int block; /* turn: an arm's first turn at this point is 0, its second 1, ... */
    /* Number within the block. The same index has the same prompt, the same wanted length and, in
     * an open loop, the same due time in every arm and block pair. */
    int index;
    int part;      /* of a run by several processes: the process that sent it, from 1; else 0 */
    double due_s;  /* when it should have been sent; in a closed loop: when its slot became free */
    double sent_s; /* when the client began to send it */
    double first_s, end_s;                    /* first piece of text; last byte. -1 = never */
    int64_t prompt_tokens, completion_tokens; /* by the server's usage; -1 = unknown */
    int64_t wanted_tokens; /* completion tokens that were asked for; -1 = not fixed */
    int pieces;            /* events that carried text */
    const float *gap_s;    /* the pieces - 1 times between consecutive pieces; borrowed */
    double lag_s; /* largest delay that the client itself added to a time of this request */
    bool cut;     /* the block ended first: no statement about its latency */
    bool failed;
    const char *error; /* NULL unless failed */
} serving_request;

#endif
