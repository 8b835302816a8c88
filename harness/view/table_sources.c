#include "harness/view/pen.h"

static const char *text_of(const js *o, const char *key) {
    const char *s = o ? js_get_str(o, key) : NULL;
    return s ? s : "";
}

static void put_program(pen *p, const js *program) {
    pen_printf(p, "%s (%s%s)", text_of(program, "version"), text_of(program, "commit"),
               js_get_bool(program, "dirty", false) ? ", with changes" : "");
}

/* The backend's device where one measured, else the processor. */
static void put_device(pen *p, const js *provenance) {
    const js *backend = js_get_object(provenance, "backend");
    const js *cpu = js_get_object(provenance, "cpu");
    if (backend)
        pen_printf(p, "%s, kernel %s", text_of(backend, "device"), text_of(backend, "kernel"));
    else
        pen_printf(p, "%s, %.0f cores", text_of(cpu, "model"), js_get_num(cpu, "cores", 0));
}

static void put_build(pen *p, const js *build) {
    pen_printf(p, "%s %s", text_of(build, "compiler"), text_of(build, "flags"));
}

static void put_host(pen *p, const js *host) {
    pen_printf(p, "%s, Linux %s%s", text_of(host, "os"), text_of(host, "kernel"),
               js_get_bool(host, "container", false) ? ", in a container" : "");
}

static void put_config(pen *p, const js *provenance) {
    pen_printf(p, "%.12s", text_of(provenance, "config_sha256"));
}

bool report_table_sources(const report_model *m, arena *mem, report_table *t) {
    *t = (report_table){.id = "sources",
                        .caption = "Where the figures come from",
                        .note = "",
                        .columns = {{"command", "", TABLE_TEXT, true},
                                    {"program", "", TABLE_TEXT, true},
                                    {"device", "", TABLE_TEXT, true},
                                    {"host", "", TABLE_TEXT, true},
                                    {"build", "", TABLE_TEXT, true},
                                    {"seed", "", TABLE_NUMBER, true},
                                    {"config", "", TABLE_TEXT, true},
                                    {"started", "", TABLE_TEXT, true},
                                    {"ended", "", TABLE_TEXT, true},
                                    {"file", "", TABLE_TEXT, true}}};
    if (!pen_start(t, mem, m->n_sources))
        return false;
    pen p = {t, mem, 0, false};
    for (size_t i = 0; i < m->n_sources; i++) {
        const js *o = m->sources[i].provenance;
        pen_text(&p, text_of(o, "command"));
        put_program(&p, js_get_object(o, "program"));
        put_device(&p, o);
        put_host(&p, js_get_object(o, "host"));
        put_build(&p, js_get_object(o, "build"));
        pen_fixed(&p, js_get_num(o, "seed", 0), 0);
        put_config(&p, o);
        pen_text(&p, text_of(o, "started"));
        pen_text(&p, text_of(o, "ended"));
        pen_file(&p, m, m->sources[i].file);
    }
    return !p.failed;
}
