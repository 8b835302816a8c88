/* attend_inside.h - the structs of attend.h's backend, for its source files. */
#ifndef SNAPMLA_KERNELS_PLUGIN_ATTEND_INSIDE_H
#define SNAPMLA_KERNELS_PLUGIN_ATTEND_INSIDE_H

#include "kernels/plugin/attend.h"

typedef struct {
    mla_backend base;   /* first: a pointer to it also points to the whole struct */
    mla_backend *inner; /* owned */
    const snapmla_attention *plugin;
    const char *kernel;
    double limit_s;
    void *stream;
    bool host;
    bool stopped; /* a call was ended by the time limit: the plugin is not called any more */
} attend_backend;

typedef struct attend_plan {
    mla_plan base;   /* first */
    mla_plan *inner; /* owned */
    void *state;     /* the plugin's */
    int calls;
    int32_t *lengths, *table; /* host: the step with all numbers in range; owned */
    int table_width;
    struct attend_plan *next; /* of the plans that outlive a plugin that was stopped */
} attend_plan;

static inline attend_backend *attend_of(const mla_backend *be) {
    return (attend_backend *)(uintptr_t)be;
}

static inline attend_plan *attend_plan_of(const mla_plan *plan) {
    return (attend_plan *)(uintptr_t)plan;
}

static inline mla_backend *attend_inner(const mla_backend *be) {
    return attend_of(be)->inner;
}

extern const mla_lab_ops attend_lab; /* in builds with CUDA */

#endif
