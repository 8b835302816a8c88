/* format_tables.h - the tables of `snapmla formats`: the list of cache formats, and the layout of
 * one. The caller releases them. */
#ifndef SNAPMLA_HARNESS_VIEW_FORMAT_TABLES_H
#define SNAPMLA_HARNESS_VIEW_FORMAT_TABLES_H

#include "harness/view/table.h"
#include "kernels/format/format.h"

/* The list: format_list() returns it without rows, and format_list_add() adds one format. */
table format_list(void);
void format_list_add(table *t, const cache_format *f);

/* One row for each plane: type, elements, where it lies. */
table format_layout(const cache_format *f);

/* The facts about a format as JSON: name, description, widths, bytes per token, planes. NULL if
 * memory is exhausted. */
js *format_document(const cache_format *f);

#endif
