/* plugin.h - the shared object that a backend came from, as results keep it. */
#ifndef SNAPMLA_HARNESS_RECORD_PLUGIN_H
#define SNAPMLA_HARNESS_RECORD_PLUGIN_H

#include "harness/record/field.h"

typedef struct {
    bool exists;      /* false for a backend of the program */
    const char *file; /* its name without folders */
    const char *sha256;
} plugin_record;

extern const record_type plugin_type;

#endif
