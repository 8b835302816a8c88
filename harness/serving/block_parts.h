/* block_parts.h - what the files of a block share: the requests, the arms' lanes, the block. */
#ifndef SNAPMLA_HARNESS_SERVING_BLOCK_PARTS_H
#define SNAPMLA_HARNESS_SERVING_BLOCK_PARTS_H

#include "generator/http/attempt.h"
#include "harness/serving/block.h"

typedef struct block block;
typedef struct lane lane;

/* A place for one request at a time. due_ns and sent_ns are ns since the start of the block. */
typedef struct load_slot load_slot;
struct load_slot {
    lane *lane;
    int64_t conversation;
    int turn;
    buf texts; /* the texts of the conversation: user, assistant, user, ..., each with its NUL.
                  Empty if conversations have one turn */
    int n_texts;
    int64_t index, wanted, due_ns;
    const task_problem *problem; /* NULL: the prompt is made */
    buf body;                    /* body of the request, as JSON */

    endpoint *server;
    attempt at;
    bool running;
    int64_t sent_ns, last_piece_ns;
    int64_t send_lag_ns, received_lag_ns; /* serving_request says what they are */
    int pieces;
    float *gaps; /* [pieces - 1], owned */
    size_t gap_capacity;
    buf error;

    load_slot *next_free;
};

/* The state of one arm in the block. */
struct lane {
    block *block;
    const block_plan *plan;
    work_block work;
    arrivals arrivals;
    int64_t next_conversation;
    int64_t arrived; /* arrivals that were drawn, those of other parts included */
    int64_t end_ns;  /* no request is due from here on; INT64_MAX = no limit */
    bool exhausted;  /* no further conversation begins */
    int failures;    /* failed requests until the first success */
    bool succeeded;
};

struct block {
    const block_options *opt;
    lane *lanes;
    int n_lanes;
    int64_t start_ns;  /* CLOCK_MONOTONIC */
    load_slot **slots; /* all slots, owned */
    size_t n_slots, slots_capacity;
    load_slot **due; /* heap of the slots that wait for their time; due[0] is due first */
    size_t n_due, due_capacity;
    load_slot *free;
    int running;
    snap_status st; /* the first error */
    snap_err *err;
};

int64_t block_now(const block *b);

/* Stores the error @st unless there was one before. */
void block_fail(block *b, snap_status st);

/* ---- block_slot.c: the life of a request ---- */

/* Creates a slot; if memory is exhausted, stores the error and returns NULL. */
load_slot *load_slot_create(lane *l);
void load_slot_free(load_slot *s);

/* Begins the next conversation of the lane in this slot. @due_ns: when it is due; ignored in an
 * open loop. False if there is none, if it is due too late, or after an error. */
bool load_slot_begin(load_slot *s, int64_t due_ns);

/* Sends the request. */
void load_slot_send(load_slot *s, int64_t now);

/* Passes the request to the sink as cut. */
void load_slot_cut(load_slot *s);

/* ---- block.c ---- */

/* Puts a slot into the heap. If memory is exhausted, releases the slot and stores the error. */
void block_push(block *b, load_slot *s);
void block_release_slot(block *b, load_slot *s);

#endif
