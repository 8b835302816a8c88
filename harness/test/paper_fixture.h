/* paper_fixture.h - reports of the kind `report paper` for tests. */
#ifndef SNAPMLA_HARNESS_TEST_PAPER_FIXTURE_H
#define SNAPMLA_HARNESS_TEST_PAPER_FIXTURE_H

#include "harness/test/report_fixture.h"
#include "harness/view/table.h"

/* A report of one run, or of none if @r is NULL. The caller owns it. The run must outlive it. */
report_model *paper_of(results *r);

/* Reads a JSON text as a file of decode steps (@e2e) or of reported figures, named "doc". */
snap_status paper_add(report_model *m, const char *json, bool e2e, snap_err *err);

/* The cell of the column with this head and group. */
const char *paper_cell(const table *t, size_t row, const char *head, const char *group);

#endif
