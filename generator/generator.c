#include "generator/generator.h"

#include "base/text.h"
#include "generator/backend.h"

static const struct {
    const char *prefix;
    snap_status (*open)(generator **out, const char *spec, const generator_options *opt,
                        snap_err *err);
} kinds[] = {
    {"http://", gen_http_open},
    {"https://", gen_http_open},
    {"local:", gen_local_open},
    {"replay:", gen_replay_open},
};

snap_status generator_open(generator **out, const char *spec, const generator_options *opt,
                           snap_err *err) {
    *out = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (text_starts(spec, kinds[i].prefix))
            return kinds[i].open(out, spec, opt, err);
    return err_set(
        err, SNAP_E_USAGE,
        "generator '%s' is unknown: expected http://..., https://..., local:DIR or replay:FILE",
        spec);
}

void generator_close(generator *g) {
    if (g)
        g->ops->close(g);
}

snap_status generator_run(generator *g, gen_source_fn source, void *source_ctx, gen_sink_fn sink,
                          void *sink_ctx, snap_err *err) {
    return g->ops->run(g, source, source_ctx, sink, sink_ctx, err);
}

bool generator_load_of(const generator *g, generator_load *out) {
    if (!g->ops->load)
        return false;
    *out = g->ops->load(g);
    return true;
}
