/* synth.h - problems of our own in the four styles, with worked solutions: what a small model is trained
 * on and asked.
 *
 * A problem is a pure function of (style, level, split, seed, number): streams can be made in parts, by
 * any number of processes, in any order. Its family is drawn among those that the level has.
 *
 * No held-out problem is ever in a stream for training, whatever the seeds: `params` states what a
 * problem is made of, and synth_split_of() cuts the space of params into two parts that have nothing in
 * common. The random numbers of the two splits come from different streams as well.
 *
 * Solutions are written for readers that predict a token at a time: every step stands on its own line, no
 * step needs more than one multiplication by a digit or one addition, and what a step needs was written
 * shortly before it or can be found by its label. */
#ifndef SNAPMLA_EVALS_SYNTH_SYNTH_H
#define SNAPMLA_EVALS_SYNTH_SYNTH_H

#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"

typedef enum { SYNTH_AIME, SYNTH_MATH, SYNTH_GPQA, SYNTH_CODE, SYNTH_STYLES } synth_style;
typedef enum { SYNTH_TRAIN, SYNTH_HELDOUT } synth_split;
enum { SYNTH_LEVELS = 6, SYNTH_LONG = 5, SYNTH_TESTS = 5 };

const char *synth_style_name(synth_style s); /* "aime", "math", "gpqa", "code" */

/* SNAP_E_USAGE, listing the names, for any other. */
snap_status synth_style_parse(const char *name, synth_style *out, snap_err *err) SNAP_CHECK_RESULT;
snap_status synth_split_parse(const char *name, synth_split *out, snap_err *err) SNAP_CHECK_RESULT;

/* All zero before the first use. */
typedef struct {
    char id[64];        /* "aime-2-heldout-17" */
    const char *family; /* static: "power" */
    int level;
    synth_style style;
    buf params;  /* "power a=17 n=345 m=211": determines the problem but for the order of options */
    buf problem; /* with the instruction: the prompt as it is asked */
    buf solution; /* with the answer stated as graders expect it */
    buf answer;   /* gold: an integer, LaTeX, a letter; empty where tests judge a program */
    int n_tests;
    buf input[SYNTH_TESTS], output[SYNTH_TESTS]; /* of a program */
} synth_problem;

/**
 * synth_make - one problem
 *
 * @level:  1..SYNTH_LEVELS; from SYNTH_LONG on solutions are 1000 to 8000 tokens long. The last has the
 *          steps of the one before, only more of them: what a model trained up to there makes of it shows
 *          how far it generalises
 * @number: of the problem in its stream, from 0
 * @out:    overwritten; its memory is used again; synth_release() in the end, also after a failure
 *
 * SNAP_E_USAGE for a level that there is not; SNAP_E_NOMEM.
 */
snap_status synth_make(synth_style style, int level, synth_split split, uint64_t seed,
                       uint64_t number, synth_problem *out, snap_err *err) SNAP_CHECK_RESULT;
void synth_release(synth_problem *p);

/* Which split a problem with these params belongs to: one in eight is held out. */
synth_split synth_split_of(const char *params);

/* Appends the problem as a line of JSON, with what the tasks synth_* read: {"id", "level", "family",
 * "params", "prompt", "answer" or "inputs" and "outputs"}, and "solution" where wanted. */
snap_status synth_write(const synth_problem *p, bool solution, buf *out,
                        snap_err *err) SNAP_CHECK_RESULT;

#endif
