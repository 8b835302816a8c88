/* plugin.h - the shared object of a plugin backend, as a result file names it. */
#ifndef SNAPMLA_HARNESS_RECORD_PLUGIN_H
#define SNAPMLA_HARNESS_RECORD_PLUGIN_H

#include "harness/record/field.h"

typedef struct {
    bool exists;      /* false for a backend that is part of the program */
    const char *file; /* file name without its folders */
    const char *sha256;
} plugin_record;

extern const record_type plugin_type;

#endif
