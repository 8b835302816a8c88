/* pages.h - the files of a report that show all of it. Each writer appends to a buffer, whose
 * `failed` says whether memory ran out. */
#ifndef SNAPMLA_HARNESS_VIEW_PAGES_H
#define SNAPMLA_HARNESS_VIEW_PAGES_H

#include "base/buf.h"
#include "harness/view/model.h"

void write_csv(const report_model *m, buf *out);  /* report.csv */
void write_page(const report_model *m, buf *out); /* report.html */

#endif
