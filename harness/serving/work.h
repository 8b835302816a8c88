/* work.h - the prompts, lengths and think times of the requests of a serving benchmark.
 *
 * A request is one turn of a conversation; with one turn, each request is a conversation of its
 * own. Number i of a block is turn i % turns of conversation i / turns. Its lengths, its prompt,
 * its sampling seed and its think time are functions of the seed of the run, the load point, the
 * turn of the arm (block) and i. They are the same for all arms. (From the second turn on, a
 * request also repeats the arm's own earlier answers.) */
#ifndef SNAPMLA_HARNESS_SERVING_WORK_H
#define SNAPMLA_HARNESS_SERVING_WORK_H

#include "evals/task.h"
#include "harness/serving/draw.h"
#include "harness/serving/prompts.h"
#include "harness/serving/trace.h"

enum { WORK_MOST_TOKENS = 1 << 22, WORK_MOST_TURNS = 1000 };

/* Where prompts and lengths come from: from a task if there is one, otherwise prompts are made,
 * with lengths from a trace if there is one, and else drawn. With has_output, the
 * lengths of answers are always drawn. */
typedef struct {
    uint64_t seed;
    draw input, output; /* tokens; of a request, or of one turn */
    draw think; /* seconds between an answer and the next request of the user or conversation */
    bool has_output;     /* lengths of answers are drawn from `output` */
    int turns;           /* turns of a conversation, at least 1 */
    double prefix_share; /* fraction of the input that is a shared prefix, 0 to 1 */
    int64_t prefixes;    /* number of different shared prefixes; 0: as many as the closed loop has
                            users, and the conversations begin with them in turn */
    const prompt_maker *maker;
    const trace *trace;   /* NULL: none */
    const task_set *task; /* NULL: none */
} serving_work;

/* The work of one block. */
typedef struct {
    const serving_work *work;
    uint64_t input, output, think, prefix, text, sampling; /* streams of random numbers */
    int64_t users;         /* users of the closed loop; needed only if work->prefixes is 0 */
    int64_t first_problem; /* index of the block's first problem of the task; those that follow come
                              next */
} work_block;
work_block work_block_make(const serving_work *work, int point, int block, int64_t users);

/* Number of prompt tokens that are wanted; -1 for the prompts of a task. */
int64_t work_input(const work_block *b, int64_t index);

/* Number of completion tokens that are wanted; -1 if they are not given. */
int64_t work_output(const work_block *b, int64_t index);

double work_think_s(const work_block *b, int64_t index);

/* Seed of the request's sampling; 31 bits. */
uint64_t work_sampling_seed(const work_block *b, int64_t index);

/* The problem of a request; NULL without a task. The blocks of a load point begin far from each
 * other, so that short blocks have different problems. */
const task_problem *work_problem(const work_block *b, int64_t index);

/* Appends the user's text. Must not be called if the prompts come from a task. */
void work_text(const work_block *b, int64_t index, buf *out);

#endif
