/* compare.h - compares the rows of one cell that were measured on several devices.
 *
 * Rows belong to the same cell if arm, scope, shape, the lengths of the sequences and the mode
 * (single steps or loops) agree. A row is compared with the first device that has the cell under
 * the same conditions (input, state of the cache; in loops, the cache is no condition). If no
 * earlier device has the cell under the row's conditions, the row is compared with the cell's first
 * row: it names the conditions that differ, and has no ratio. Percentages are relative to each
 * device's own measured roofline. */
#ifndef SNAPMLA_HARNESS_VIEW_COMPARE_H
#define SNAPMLA_HARNESS_VIEW_COMPARE_H

#include "harness/view/model.h"

typedef struct compared {
    const report_cell *cell;
    const report_cell *first; /* the row it is compared with; the cell's first row if no earlier
                                 device has the same conditions */
    double ratio;   /* speed relative to @first; NAN if @first is of the same device or @differs is
                       set */
    double tok_usd; /* tokens per dollar; NAN without a price */
    const char *differs; /* conditions that differ from @first: "input, cache"; "" = none */
    bool common;  /* the row counts in the means of its mode and arm: all devices have the cell */
    bool metered; /* the row counts in the mean energy of its arm: all devices whose energy was
                     measured have the cell */
} compared;

/* Sets `common` and `metered` of the @n rows, which are in the order of their cells. The devices
 * are taken in their order: one that has none of the cells that the devices before it share is
 * left out. False: out of memory. */
bool compare_find_sets(const report_model *m, compared *rows, size_t n);

/* Means of one device and arm over its rows with `common`, or over those with `metered` for the
 * energy. NAN if there are none. All but the percentage are geometric. */
typedef struct {
    size_t n;       /* rows */
    size_t metered; /* rows with energy */
    double speed;   /* relative to the first device of the set */
    double tok_s, tok_usd, tok_j;
    double roofline_pct; /* the median over the rows that had a cold cache */
} device_means;
device_means compare_means(const report_model *m, int device, const char *arm, bool loops);

/* The mean speed of FP8 relative to BF16 on one device, over the shapes of its rows with `common`.
 * NAN if there are none. */
double compare_fp8_gain(const report_model *m, int device, bool loops);

/* Whether any device has rows of this mode that are compared. */
bool compare_has(const report_model *m, bool loops);

/* Whether a loop ran with a warm cache, so that the roofline of the memory is no limit for it. */
bool compare_is_warm(const report_cell *c);

/* Sets the names of the devices: the device, its backend and its kernels, as in
 * "AMD EPYC, 2 threads (cpu, avx2)". Equal names get their numbers. False: out of memory. */
bool compare_name_devices(report_model *m);

/* The origin of the rows that were measured on a device, else the first origin of its files;
 * NULL if it has no files. */
const origin_record *compare_origin(const report_model *m, int device);

/* Whether a row was measured and passed. */
bool compare_usable(const report_cell *c);

/* Whether a row has a flag that puts its time in doubt. `weak_baseline` does not: it says how the
 * two arms of one device relate to each other. */
bool compare_doubtful(const report_cell *c);

/* Whether two rows belong to the same cell. */
bool compare_same_cell(const report_cell *a, const report_cell *b);

/* Whether two rows have the same work in one step, whatever their arms compute. */
bool compare_same_step(const report_cell *a, const report_cell *b);

/* Whether one command measures both rows on a device. In loops the state of the cache follows from
 * the shape and from the device, so it is no condition that a command sets. */
bool compare_same_command(const report_cell *a, const report_cell *b);

#endif
