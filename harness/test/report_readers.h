/* report_readers.h - readers of a report's formats that share no code with its writers. */
#ifndef SNAPMLA_HARNESS_TEST_REPORT_READERS_H
#define SNAPMLA_HARNESS_TEST_REPORT_READERS_H

#include "harness/view/tables.h"

/* What is wrong with a text as XML: tags must nest, attributes must be quoted, entities must be
 * known, control characters are forbidden. NULL = nothing. */
const char *xml_fault(const char *text);
void expect_xml(const char *text);

/* Checks that a page is well-formed, that it loads nothing, that every table has a caption, and
 * that every figure has a description. */
void expect_page(const char *page);

/* Checks braces and columns of a LaTeX table, and that it has no \input and only printable
 * ASCII. */
void expect_latex(const report_model *m, report_table_fn build);

/* Checks the page, the Markdown report, the figures and three LaTeX tables of a model. */
void expect_well_formed(const report_model *m);

size_t count_of(const char *text, const char *what);

#endif
