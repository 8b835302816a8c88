/* fidelity_tables.h - the tables that `snapmla fidelity` prints. The caller releases them. */
#ifndef SNAPMLA_HARNESS_VIEW_FIDELITY_TABLES_H
#define SNAPMLA_HARNESS_VIEW_FIDELITY_TABLES_H

#include "base/json.h"
#include "harness/view/table.h"

/* The errors of the cache formats. fidelity_table() returns the table without rows, and
 * fidelity_table_add() adds one row of the "fidelity" section. */
table fidelity_table(void);
void fidelity_table_add(table *t, const js *row);

/* The kinds of rows in the "model_fidelity" section, in the order in which they are printed. */
typedef enum {
    MODEL_FIDELITY_LAYERS,
    MODEL_FIDELITY_VALUES,
    MODEL_FIDELITY_BOUNDS,
    MODEL_FIDELITY_DEPTHS,
    MODEL_FIDELITY_DIVERGENCES,
    MODEL_FIDELITY_PREDICTIONS,
    MODEL_FIDELITY_FORECASTS,
} model_fidelity_kind;

const char *model_fidelity_title(model_fidelity_kind kind); /* "" for predictions */

/* The table of one kind of rows, which may be empty. @rows: the "model_fidelity" section. */
table model_fidelity_table(const js *rows, model_fidelity_kind kind);

#endif
