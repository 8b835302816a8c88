/* serving_run.h - a serving benchmark, from options to a RUN folder:
 *
 *   requests.jsonl  every request (request_lines.h)
 *   answers.jsonl   with `grade`: the answers (answers.h)
 *   journal         the hash of the options, what the first requests showed about the length of
 *                   prompts, and the blocks that are complete
 *   log             a log with times, for people
 *
 * At each load point the arms take turns, A B B A ..., or run at the same time. With an even number
 * of turns, a linear drift of a machine cancels in their difference. Block b of each arm has the
 * same texts, lengths and, in an open loop, the same arrivals. An interrupted run continues with
 * the block that was not complete.
 *
 * With `part`, the run has several processes. Each has its own folder, sends its part of the
 * requests (block_plan), and begins each block when all parts are there (meeting.h). The folders
 * are joined by serving_join() (join_parts.h).
 *
 * With `search`, the load points follow from what was measured (load_search.h). The journal has
 * each choice, so the search continues from there. */
#ifndef SNAPMLA_HARNESS_SERVING_SERVING_RUN_H
#define SNAPMLA_HARNESS_SERVING_SERVING_RUN_H

#include "harness/opt.h"
#include "harness/serving/answers.h"
#include "harness/serving/load_search.h"
#include "harness/serving/request_lines.h"
#include "harness/serving/result_rows.h"

typedef struct {
    opt_list arms;                                            /* NAME=URL[,key=value...] */
    const char *concurrency, *rate, *ramp, *speed, *arrivals; /* load_points_parse() */
    const char *search;                                       /* load_range_parse(); NULL: none */
    slo_list targets;                                         /* latency targets for `search` */
    const char *trace;                                        /* a file; NULL: none */
    const char *input, *output; /* draw_parse(); NULL: the lengths of the trace or task, else 512
                                   and 128 tokens */
    const char *think;          /* draw_parse() */
    const char *prompts;        /* "task:NAME"; NULL: the prompts are random words */
    const char *data;           /* data folder of the task; NULL: the program's own datasets/ */
    const char *tokenizer;      /* the folder of a checkpoint; NULL: none */
    double prefix_share;
    int64_t prefixes, turns;
    bool ignore_eos;
    int64_t max_tokens; /* most tokens of an answer, for a task without `output`; 0: the suite's
                           limit */
    double temperature; /* -1: the suite's for the prompts of a task, else 0 */
    double duration_s;  /* duration of a block; 0: 30 s if there is neither `requests` nor a trace,
                           else no limit */
    int64_t requests;   /* most requests of a block; 0: no limit */
    int64_t blocks; /* blocks of each arm at a load point; with `search`, each time it is chosen */
    int64_t warmup; /* requests to an arm when its load point changes; not recorded */
    double drain_s;
    bool concurrent_arms; /* run all arms at the same time */
    bool grade;           /* store the answers to the problems of a task, and grade them */
    double margin_pp;     /* for `grade`: the largest difference that counts as equal */
    int64_t seed;
    const char *part; /* "1/4", shard_parse(): one of several processes; NULL: the only one */
    const char *meet; /* with `part`: HOST:PORT of part 1 (meeting.h) */
    const char *out;  /* the RUN folder */
    generate_options generate;
} serving_options;

typedef struct {
    load_points points;
    serving_arm_facts *arms; /* [n_arms] as the options state them; owned by mem */
    int n_arms;
    bool counted;     /* the first arm's server reports usage, or the prompts are a task's */
    bool interrupted; /* serving_run() failed, and the result has the blocks that are complete */
    request_list requests;
    parity_row *parity; /* [n_parity], with `grade` and two arms or more; owned by mem */
    int n_parity;
    arena mem;
} serving_result;

/**
 * serving_run - run a benchmark, or continue one
 *
 * @config: the resolved options, which a run that is continued must repeat, except `out`, `meet`,
 *          `slo`, `gpus` and `margin`
 * @out:    all requests; release with serving_result_release(), also after a failure
 *
 * SNAP_E_USAGE for wrong options; SNAP_E_CANCELLED if it was interrupted; SNAP_E_NET if a server or
 * another part fails (block_run(), meeting.h). After the last two, once prompts are prepared, @out
 * is `interrupted` and has the blocks that are complete. Errors of reading files and of the
 * journal.
 */
snap_status serving_run(const serving_options *o, const js *config, serving_result *out,
                        snap_err *err) SNAP_CHECK_RESULT;

/* Reads a run that is complete, without sending anything. Its loads and arms follow from the
 * options. SNAP_E_USAGE for wrong ones; errors of request_lines_read(). */
snap_status serving_run_read(const serving_options *o, serving_result *out,
                             snap_err *err) SNAP_CHECK_RESULT;
void serving_result_release(serving_result *r);

#endif
