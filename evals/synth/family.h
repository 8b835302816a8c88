/* family.h - what the families of problems share: draws, options, and the tables of the styles. */
#ifndef SNAPMLA_EVALS_SYNTH_FAMILY_H
#define SNAPMLA_EVALS_SYNTH_FAMILY_H

#include "base/rng.h"
#include "evals/synth/synth.h"
#include "evals/synth/work.h"

/* Writes params (behind the family's name), problem, solution and answer or tests. False: these draws
 * make no problem of the family; it is tried again with others. */
typedef bool (*synth_family_fn)(synth_problem *p, rng *r);

typedef struct {
    const char *name;
    synth_family_fn make;
    int from, to; /* levels */
} synth_family;

/* Ended by a NULL name. Every level has at least one. */
extern const synth_family synth_aime_families[], synth_math_families[], synth_gpqa_families[],
    synth_code_families[];

/* Uniform in low..high. */
int64_t draw(rng *r, int64_t low, int64_t high);
/* The same without 0; low < 0 < high. */
int64_t draw_nonzero(rng *r, int64_t low, int64_t high);
/* One of the values for each level; a family without the last level needs none for it. */
#define BY_LEVEL(p, ...) ((const int64_t[SYNTH_LEVELS]){__VA_ARGS__}[(p)->level - 1])

/* The last line of a solution: the answer, as the gold has it, in a box. */
void family_box(synth_problem *p);

enum { FAMILY_OPTIONS = 4, FAMILY_OPTION_MAX = 32 };

/* Four options in a drawn order, the right one, which is @option[0], among them; the last line of the
 * solution, and the gold. False where two of them are the same. */
bool family_options(synth_problem *p, rng *r, char option[FAMILY_OPTIONS][FAMILY_OPTION_MAX]);

#endif
