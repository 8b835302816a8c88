/* One request of a serving benchmark, and what became of it. */
#ifndef SNAPMLA_HARNESS_SERVING_REQUEST_H
#define SNAPMLA_HARNESS_SERVING_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

/* due_s, sent_s, first_s and end_s are seconds since the start of the request's block. */
typedef struct {
    int arm;   /* 0 = the baseline */
    int point; /* number of the load point in the sweep */
    int block; /* turn: an arm's first turn at this point is 0, its second 1, ... */
    /* Number within the block. In block b of every arm, an index has the same user text and wanted
     * length. In an open loop, the first turns of conversations also have the same due times. */
    int index;
    int part;              /* for a run by several processes: the sender, from 1; else 0 */
    double due_s;          /* when it should have been sent (block.h) */
    double sent_s;         /* when the client began to send it */
    double first_s, end_s; /* first piece of text; end of answer. -1 = never */
    int64_t prompt_tokens, completion_tokens; /* as the server's usage states; -1 = unknown */
    int64_t wanted_tokens; /* completion tokens that were requested; -1 = not fixed */
    int pieces;            /* events that carried text */
    const float *gap_s;    /* the pieces - 1 times between consecutive pieces; borrowed */
    double lag_s; /* largest delay that the client itself added to a time of this request */
    double received_lag_s; /* largest delay that the client added after it sent the request */
    bool cut;              /* the block ended before the request did */
    bool failed;
    const char *error; /* NULL unless failed */
} serving_request;

#endif
