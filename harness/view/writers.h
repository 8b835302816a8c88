/* writers.h - one function a format; each appends to a buffer, whose `failed` says whether it fits. */
#ifndef SNAPMLA_HARNESS_VIEW_WRITERS_H
#define SNAPMLA_HARNESS_VIEW_WRITERS_H

#include "harness/view/table.h"

void write_csv(const report_model *m, buf *out);
void write_latex(const report_table *t, buf *out);
void write_html(const report_model *m, buf *out);

#endif
