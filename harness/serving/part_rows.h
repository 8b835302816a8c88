/* part_rows.h - how much each process of a run by several (--part I/N) sent, and its lag. */
#ifndef SNAPMLA_HARNESS_SERVING_PART_ROWS_H
#define SNAPMLA_HARNESS_SERVING_PART_ROWS_H

#include "harness/record/serving.h"
#include "harness/serving/request.h"

/* Appends a row of kind part for each part that sent requests to an arm at a load point; none if
 * the run had one process. @requests: [n], also of other arms and load points. @base: names the
 * arm, the load point and the load. SNAP_E_NOMEM. */
snap_status serving_rows_of_parts(const serving_request *requests, size_t n, int arm,
                                  const serving_record *base, js *rows,
                                  snap_err *err) SNAP_CHECK_RESULT;

#endif
