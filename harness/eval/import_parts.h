/* import_parts.h - what the two files of `snapmla eval import` share. */
#ifndef SNAPMLA_HARNESS_EVAL_IMPORT_PARTS_H
#define SNAPMLA_HARNESS_EVAL_IMPORT_PARTS_H

#include "harness/eval/foreign_log.h"
#include "harness/eval/import.h"

/* A log and the rows of it that are used. */
typedef struct {
    char name[41];
    const char *path;
    foreign_log log;
    const char *filter; /* lm-eval's; NULL: none */
    js **rows;          /* [n], borrowed from the log, sorted by problem and sample */
    size_t n;
} import_arm;

/* Writes the files. @arms: [o->n], with the same problems and samples. */
snap_status import_write(const import_options *o, const import_arm *arms, js **out,
                         snap_err *err) SNAP_CHECK_RESULT;

#endif
