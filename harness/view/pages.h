/* pages.h - two report formats, CSV and HTML. Each writer appends to a buffer and sets its field
 * `failed` if memory is exhausted. */
#ifndef SNAPMLA_HARNESS_VIEW_PAGES_H
#define SNAPMLA_HARNESS_VIEW_PAGES_H

#include "base/buf.h"
#include "harness/view/model.h"

void write_csv(const report_model *m, buf *out);  /* report.csv */
void write_page(const report_model *m, buf *out); /* report.html */

#endif
