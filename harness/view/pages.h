/* pages.h - two report formats, CSV and HTML. Each writer appends to a buffer and sets its field
 * `failed` if memory is exhausted. */
#ifndef SNAPMLA_HARNESS_VIEW_PAGES_H
#define SNAPMLA_HARNESS_VIEW_PAGES_H

#include "base/buf.h"
#include "harness/view/model.h"

void write_csv(const report_model *m, buf *out); /* report.csv */

/* The values of the column "section" of report.csv; ends with NULL. */
extern const char *const csv_sections[];
/* The rows of one section, with the columns that this section has and without the column "section":
 * tidy-SECTION.csv. Appends nothing if there is no such row. */
void write_csv_section(const report_model *m, const char *section, buf *out);

void write_page(const report_model *m, buf *out); /* report.html */

#endif
