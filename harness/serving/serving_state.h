/* serving_state.h - what the files of a serving run (serving_run.h) share. */
#ifndef SNAPMLA_HARNESS_SERVING_SERVING_STATE_H
#define SNAPMLA_HARNESS_SERVING_SERVING_STATE_H

#include "harness/serving/meeting.h"
#include "harness/serving/serving_files.h"
#include "harness/serving/serving_run.h"

enum { SERVING_TARGETS_MAX = 16 };

typedef struct {
    const serving_options *opt;
    serving_result *out;
    arena *mem;
    serving_work work;
    prompt_maker maker;
    trace trace;
    task_set task;
    gen_sampling sampling;
    serving_target targets[SERVING_TARGETS_MAX];
    http *engines[SERVING_TARGETS_MAX];
    int warm[SERVING_TARGETS_MAX]; /* index of the load point for which an arm was last warmed up,
                                      plus 1; 0 = none yet */
    arrival_pattern pattern;       /* arrivals of the load points that the search makes */
    load_search search;
    int64_t searched; /* bytes of requests.jsonl that the search has read */
    eval_shard part;  /* 0 and 0: the only process */
    meeting *meeting;
    serving_files files;
} serving;

/* SNAP_E_NOMEM */
snap_status serving_no_memory(snap_err *err) SNAP_CHECK_RESULT;

/* ---- serving_setup.c ---- */

/* Checks the options, and fills loads, work, targets and the facts of the arms from them. Errors:
 * those that serving_run() can return before it sends anything. */
snap_status serving_setup(serving *s, snap_err *err) SNAP_CHECK_RESULT;

/* Fills only the loads and the facts of the arms, for a run that is read and not continued. */
snap_status serving_setup_read(serving *s, snap_err *err) SNAP_CHECK_RESULT;

/* ---- serving_prompts.c ---- */

/* Prepares the making of prompts, unless they are a task's. Two requests to the first arm's server
 * find how many tokens prompts have; the journal keeps the result. */
snap_status serving_prepare_prompts(serving *s, snap_err *err) SNAP_CHECK_RESULT;

/* ---- serving_turns.c ---- */

/* Runs the blocks that are not complete, at all load points. */
snap_status serving_run_points(serving *s, snap_err *err) SNAP_CHECK_RESULT;

/* Runs the blocks that are not complete of turn @turn (>= 0) at a load point. A turn is as many
 * blocks of each arm as the options say. */
snap_status serving_run_turn(serving *s, int point, int turn, snap_err *err) SNAP_CHECK_RESULT;

/* ---- serving_search.c ---- */

/* Restores the loads that earlier runs chose. Call it when the journal is open. */
snap_status serving_restore_search(serving *s, snap_err *err) SNAP_CHECK_RESULT;

/* Chooses loads and runs their blocks until the search is over. */
snap_status serving_run_search(serving *s, snap_err *err) SNAP_CHECK_RESULT;

#endif
