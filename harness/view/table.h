/* table.h - the tables of a report as plain text, before any format.
 *
 * Built once from the model; the Markdown, LaTeX and HTML writers print the same cells, each with
 * its own escapes. Cells are UTF-8 and hold what they say: no markup. An absent number is "–". */
#ifndef SNAPMLA_HARNESS_VIEW_TABLE_H
#define SNAPMLA_HARNESS_VIEW_TABLE_H

#include "harness/view/model.h"

typedef enum { TABLE_TEXT, TABLE_NUMBER, TABLE_VERDICT, TABLE_FLAGS } report_table_kind;

typedef struct {
    const char *head;  /* "µs" */
    const char *group; /* what adjacent columns have in common: "BF16"; "" = nothing */
    report_table_kind kind;
    bool paper; /* narrow enough to print: part of the LaTeX report_table */
} report_table_column;

enum { TABLE_COLUMNS_MAX = 20 };

typedef struct {
    const char *id;      /* "speed": the HTML anchor, the LaTeX label */
    const char *caption; /* what it shows, with units where columns don't have them */
    const char *note;    /* how to read it; "" = nothing to say */
    report_table_column columns[TABLE_COLUMNS_MAX];
    int n_columns;
    size_t n_rows;
    const char **cells; /* [n_rows][n_columns] */
} report_table;

/* Each builds its table in the arena; false when out of memory. n_rows is 0 where the model has
 * nothing to show. */
bool report_table_ceilings(const report_model *m, arena *mem, report_table *t);
bool report_table_machines(const report_model *m, arena *mem, report_table *t);
bool report_table_compare(const report_model *m, arena *mem, report_table *t);
bool report_table_speed(const report_model *m, arena *mem, report_table *t);
bool report_table_ablation(const report_model *m, arena *mem, report_table *t);
bool report_table_not_measured(const report_model *m, arena *mem, report_table *t);
bool report_table_parity(const report_model *m, arena *mem, report_table *t);
bool report_table_arms(const report_model *m, arena *mem, report_table *t);
bool report_table_mismatches(const report_model *m, arena *mem, report_table *t);
bool report_table_fidelity(const report_model *m, arena *mem, report_table *t);
bool report_table_predictions(const report_model *m, arena *mem, report_table *t);
bool report_table_layers(const report_model *m, arena *mem, report_table *t);
bool report_table_values(const report_model *m, arena *mem, report_table *t);
bool report_table_bounds(const report_model *m, arena *mem, report_table *t);
bool report_table_depth(const report_model *m, arena *mem, report_table *t);
bool report_table_reported(const report_model *m, arena *mem, report_table *t);
bool report_table_sources(const report_model *m, arena *mem, report_table *t);

typedef bool (*report_table_fn)(const report_model *m, arena *mem, report_table *t);

/* The device that a file's rows were measured on; "" = not said. */
const char *report_device_of(const report_model *m, int file);

const char *report_table_cell(const report_table *t, size_t row, int column);

#endif
