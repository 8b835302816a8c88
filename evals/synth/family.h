/* family.h - declarations that the families of generated problems share: random draws, the ends of
 * solutions, options, and the tables of families. */
#ifndef SNAPMLA_EVALS_SYNTH_FAMILY_H
#define SNAPMLA_EVALS_SYNTH_FAMILY_H

#include "base/rng.h"
#include "evals/synth/synth.h"
#include "evals/synth/work.h"

/* Makes one problem from random draws: appends to params (after the family's name) and writes
 * problem, solution, and answer or tests. False if these draws make no valid problem; the caller
 * tries again with others. */
typedef bool (*synth_family_fn)(synth_problem *p, rng *r);

typedef struct {
    const char *name;
    synth_family_fn make;
    int from, to; /* range of levels */
} synth_family;

/* Each table ends with a NULL name. Every level has at least one family. */
extern const synth_family synth_aime_families[], synth_math_families[], synth_gpqa_families[],
    synth_code_families[];

/* A uniform integer in low..high. */
int64_t draw(rng *r, int64_t low, int64_t high);
/* A uniform integer in low..high other than 0; requires low < 0 < high. */
int64_t draw_nonzero(rng *r, int64_t low, int64_t high);
/* Selects the value for the problem's level. A family that lacks the last levels may list fewer
 * values. */
#define BY_LEVEL(p, ...) ((const int64_t[SYNTH_LEVELS]){__VA_ARGS__}[(p)->level - 1])

/* Writes the last line of a solution: the gold answer in a box. */
void family_box(synth_problem *p);

enum { FAMILY_OPTIONS = 4, FAMILY_OPTION_MAX = 32 };

/* Writes four options in random order into the problem, the right one's letter into the answer,
 * and the last two lines of the solution. @option[0] is the right one. False if two options are
 * equal. */
bool family_options(synth_problem *p, rng *r, char option[FAMILY_OPTIONS][FAMILY_OPTION_MAX]);

#endif
