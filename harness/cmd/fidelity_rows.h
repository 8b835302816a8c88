/* fidelity_rows.h - the rows of `fidelity --model`: measured on a text or predicted for a suite */
#ifndef SNAPMLA_HARNESS_CMD_FIDELITY_ROWS_H
#define SNAPMLA_HARNESS_CMD_FIDELITY_ROWS_H

#include "base/hash.h"
#include "base/term.h"
#include "harness/cmd/fidelity_model.h"
#include "harness/record/results.h"

typedef struct {
    const fidelity_model_args *args;
    results *r; /* gets the rows in the section model_fidelity */
    char text_sha256[HASH_HEX], checkpoint_sha256[HASH_HEX];
    term_progress progress;
} fidelity_rows;

/* The device that --backend names, as in local_options; NULL for "auto" and "cpu". Other devices
 * are used only if they are named. The default is the CPU on every machine, so that results of
 * different machines are comparable. */
const char *fidelity_device(const fidelity_model_args *a);

/* Measures on the text, or predicts for the suite of the arguments. Errors: those of reading,
 * of running the model, and SNAP_E_NOMEM. */
snap_status fidelity_rows_make(fidelity_rows *s, snap_err *err) SNAP_CHECK_RESULT;

#endif
