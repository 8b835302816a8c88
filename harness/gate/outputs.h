/* outputs.h - verdicts for those who read them: a table, CI's files and its log. Each appends to a buffer
 * (buf_check() says whether it fits); names and reasons come from outside and are escaped. */
#ifndef SNAPMLA_HARNESS_GATE_OUTPUTS_H
#define SNAPMLA_HARNESS_GATE_OUTPUTS_H

#include "base/json.h"

/* Columns of text: what, verdict, change, its interval, threshold, p. */
void gate_write_text(const js *rows, bool color, buf *out);

/* A table for a pull request or a job's summary. @title: "snapmla gate". */
void gate_write_markdown(const js *rows, const char *title, buf *out);

/* JUnit XML: a test case a row. Regressions and wrong results are failures, what can't be decided is an
 * error, noise and reports are passed with a note. */
void gate_write_junit(const js *rows, buf *out);

/* Workflow commands of GitHub Actions, ::error and ::warning, a line a row that is not ok. */
void gate_write_github(const js *rows, buf *out);

/* GitLab's code quality report: an array of issues. @file: the path that they are shown at. */
void gate_write_gitlab(const js *rows, const char *file, buf *out);

#endif
