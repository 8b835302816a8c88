/* named_arms.h - the named arms of a run (`bench --arm`) as a grid: one row for each cell, one
 * column for each arm, the baseline first; and how each two arms of a cell compare. */
#ifndef SNAPMLA_HARNESS_VIEW_NAMED_ARMS_H
#define SNAPMLA_HARNESS_VIEW_NAMED_ARMS_H

#include "harness/measure/paired_ratio.h"
#include "harness/view/model.h"

enum { NAMED_ARMS_MAX = 32 }; /* further arms of a file are not shown */

/* Two arms that both passed in a cell. */
typedef struct {
    size_t cell;
    int base, arm;     /* base < arm, in the order of the file */
    paired_ratio gain; /* the time of `base` / that of `arm`, as in cell_against (record/cell.h) */
} named_pair;

struct named_arms {
    int file;
    int n_arms;
    size_t n_cells;
    const char *arm[NAMED_ARMS_MAX]; /* names in the order of the file */
    const report_cell **at;          /* [n_cells][n_arms] in the order of the file; NULL = no row */
    named_pair *pairs;               /* [n_pairs] sorted by cell, base and arm */
    size_t n_pairs;
};
typedef struct named_arms named_arms;

/* Finds the named arms of all files: m->named and m->n_named. Call it after the cells are sorted.
 * Returns false when out of memory. */
bool named_arms_find(report_model *m);

/* The row of an arm in a cell; NULL = none. */
const report_cell *named_arms_at(const named_arms *g, size_t cell, int arm);

/* Some row of the cell, for the fields of its shape. */
const report_cell *named_arms_any(const named_arms *g, size_t cell);

/* The place of the row's arm among the arms of its file; -1 if it has none. */
int named_arms_index(const report_model *m, const report_cell *c);

/* The comparison of two arms, @base < @arm, in a cell; NULL: one of them has no time there. */
const named_pair *named_arms_pair(const named_arms *g, size_t cell, int base, int arm);

/* How an arm compares with another one in a cell. */
typedef enum {
    NAMED_NONE,    /* one of the two has no time, or the arm is the baseline */
    NAMED_UNKNOWN, /* the ratio of the two arms has no interval */
    NAMED_WIN,     /* the whole interval is above 1: the arm is faster */
    NAMED_TIE,     /* the interval contains 1 */
    NAMED_LOSS     /* the whole interval is below 1 */
} named_outcome;
named_outcome named_arms_outcome(const report_cell *c); /* the row's arm against the baseline */
named_outcome named_pair_outcome(const named_pair *p); /* p->arm against p->base; NULL is allowed */

#endif
