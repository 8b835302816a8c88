/* writers.h - one function a format; each appends to a buffer, whose `failed` says whether it fits. */
#ifndef SNAPMLA_HARNESS_REPORT_WRITERS_H
#define SNAPMLA_HARNESS_REPORT_WRITERS_H

#include "harness/report/table.h"

/* The tables in the order of a report, NULL-terminated. */
extern const report_table_fn report_tables[];

void write_csv(const report_model *m, buf *out);
void write_latex(const report_table *t, buf *out);
void write_html(const report_model *m, buf *out);

#endif
