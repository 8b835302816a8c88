/* report_readers.h - readers of a report's formats that know nothing of its writers. */
#ifndef SNAPMLA_HARNESS_TEST_REPORT_READERS_H
#define SNAPMLA_HARNESS_TEST_REPORT_READERS_H

#include "harness/view/tables.h"

/* What is wrong with a text as XML: tags nest, attributes are quoted, entities are known; NULL =
 * nothing. */
const char *xml_fault(const char *text);
void expect_xml(const char *text);

/* A page that asks nothing of anybody, every table with its caption, every figure with its
 * description. */
void expect_page(const char *page);

/* Braces and columns of a table, and nothing that LaTeX would run. */
void expect_latex(const report_model *m, report_table_fn build);

/* Every format of a model. */
void expect_well_formed(const report_model *m);

size_t count_of(const char *text, const char *what);

#endif
