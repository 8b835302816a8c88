/* print_serving.h - prints the result of a serving benchmark. */
#ifndef SNAPMLA_HARNESS_CMD_PRINT_SERVING_H
#define SNAPMLA_HARNESS_CMD_PRINT_SERVING_H

#include "harness/serving/serving_results.h"

/* Prints the result document if @json, else its tables and, if the answers of two arms or more were
 * graded, the table of their accuracies. SNAP_E_NOMEM; errors of print_text(). */
snap_status print_serving(results *r, const serving_result *res, bool json,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
