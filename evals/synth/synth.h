/* synth.h - generated problems in four styles with worked solutions, used to train and to test a
 * small model.
 *
 * A problem is a pure function of (style, level, split, seed, number). So a training stream can be
 * generated in parts, by any number of processes, in any order. (synth_stream() also replaces
 * held-out problems that repeat.) The problem's family is drawn from those that the level has.
 *
 * No problem of a training stream has the `params` of a held-out problem, for any seeds, because
 * synth_split_of() divides the possible params into two disjoint sets. In addition, the random
 * numbers of the two splits come from different streams.
 *
 * Solutions are written for models that predict one token at a time. They consist of small steps,
 * such as one multiplication by a digit or one addition. What a step needs was written shortly
 * before or can be found by its label. */
#ifndef SNAPMLA_EVALS_SYNTH_SYNTH_H
#define SNAPMLA_EVALS_SYNTH_SYNTH_H

#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"

typedef enum { SYNTH_AIME, SYNTH_MATH, SYNTH_GPQA, SYNTH_CODE, SYNTH_STYLES } synth_style;
typedef enum { SYNTH_TRAIN, SYNTH_HELDOUT } synth_split;
enum { SYNTH_LEVELS = 6, SYNTH_LONG = 5, SYNTH_TESTS = 5 };

const char *synth_style_name(synth_style s); /* "aime", "math", "gpqa", "code" */

/* Parse a name. SNAP_E_USAGE for other names; the message lists the valid ones. */
snap_status synth_style_parse(const char *name, synth_style *out, snap_err *err) SNAP_CHECK_RESULT;
snap_status synth_split_parse(const char *name, synth_split *out, snap_err *err) SNAP_CHECK_RESULT;

/* All zero before the first use. */
typedef struct {
    char id[64];        /* "aime-2-heldout-17" */
    const char *family; /* static: "power" */
    int level;
    synth_style style;
    buf params;   /* "power a=17 n=345 m=211": determines the problem, except for the order of
                     options and, if it asks for a program, the example and the tests */
    buf problem;  /* the prompt, including the instruction */
    buf solution; /* ends with the answer in the form that graders expect */
    buf answer;   /* gold: an integer, LaTeX or a letter; empty if tests judge a program */
    int n_tests;
    buf input[SYNTH_TESTS], output[SYNTH_TESTS]; /* [n_tests] standard input and expected output of
                                                    each test of a program */
} synth_problem;

/**
 * synth_make - generate one problem
 *
 * @level:  1..SYNTH_LEVELS. From SYNTH_LONG on, solutions have about 1000 to 8000 tokens. The last
 *          level has the same kinds of steps as the level before it, but more of them. So it shows
 *          whether a model that was trained on the lower levels generalises to longer solutions
 * @number: index of the problem in its stream, from 0
 * @out:    overwritten, and its memory is reused; call synth_release() at the end, also after a
 *          failure
 *
 * SNAP_E_USAGE for an invalid level; SNAP_E_NOMEM.
 */
snap_status synth_make(synth_style style, int level, synth_split split, uint64_t seed,
                       uint64_t number, synth_problem *out, snap_err *err) SNAP_CHECK_RESULT;
void synth_release(synth_problem *p);

/* Returns the split of the problem with these parameters, by a hash of them. About one set of
 * parameters in eight is held out. */
synth_split synth_split_of(const char *params);

/* Appends the problem as one line of JSON in the form that the tasks synth_* read: {"id", "level",
 * "family", "params", "prompt", "answer" or "inputs" and "outputs"}, and "solution" if
 * requested. */
snap_status synth_write(const synth_problem *p, bool solution, buf *out,
                        snap_err *err) SNAP_CHECK_RESULT;

#endif
