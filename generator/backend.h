/* backend.h - what each kind of generator implements for generator.h. Private to generator/.
 *
 * The object of a backend starts with a `generator`, so a pointer to one is also a pointer to the
 * other. */
#ifndef SNAPMLA_GENERATOR_BACKEND_H
#define SNAPMLA_GENERATOR_BACKEND_H

#include "generator/generator.h"

typedef struct {
    snap_status (*run)(generator *g, gen_source_fn source, void *source_ctx, gen_sink_fn sink,
                       void *sink_ctx, snap_err *err);
    void (*close)(generator *g);                /* frees the object */
    generator_load (*load)(const generator *g); /* NULL: there is no client to measure */
} generator_ops;

struct generator {
    const generator_ops *ops;
};

/* Openers. @spec is the whole spec, with its prefix, as generator_open() takes it. */
snap_status gen_http_open(generator **out, const char *spec, const generator_options *opt,
                          snap_err *err) SNAP_CHECK_RESULT;
snap_status gen_local_open(generator **out, const char *spec, const generator_options *opt,
                           snap_err *err) SNAP_CHECK_RESULT;
snap_status gen_replay_open(generator **out, const char *spec, const generator_options *opt,
                            snap_err *err) SNAP_CHECK_RESULT;

#endif
