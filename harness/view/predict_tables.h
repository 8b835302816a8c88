/* predict_tables.h - the output of `snapmla bench model --predict`: the predicted rows, the rules
 * that they follow from, and how well they agree with measured rows. The caller releases the
 * tables. */
#ifndef SNAPMLA_HARNESS_VIEW_PREDICT_TABLES_H
#define SNAPMLA_HARNESS_VIEW_PREDICT_TABLES_H

#include "harness/bench/predict.h"
#include "harness/view/table.h"

table predict_rows_table(const predict_result *p);
table predict_rules_table(const predict_result *p);
table predict_agreement_table(const predict_result *p);

#endif
