#include "harness/view/pen.h"

static void put_program(pen *p, const origin_program *o) {
    pen_printf(p, "%s (%s%s)", o->version, o->commit, o->dirty ? ", with uncommitted changes" : "");
}

/* The backend's device, or the processor if no backend was used. */
static void put_device(pen *p, const origin_record *o) {
    if (o->backend.exists)
        pen_printf(p, "%s, kernel %s", o->backend.device, o->backend.kernel);
    else
        pen_printf(p, "%s, %lld cores", o->cpu.model, (long long)o->cpu.cores);
}

static void put_host(pen *p, const origin_host *o) {
    pen_printf(p, "%s, Linux %s%s", o->os, o->kernel, o->container ? ", in a container" : "");
}

bool report_table_sources(const report_model *m, arena *mem, table *t) {
    *t = (table){.id = "sources",
                 .caption = "Sources of the figures",
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
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_sources; i++) {
        const origin_record *o = m->sources[i].row;
        pen_text(&p, o->command);
        put_program(&p, &o->program);
        put_device(&p, o);
        put_host(&p, &o->host);
        pen_printf(&p, "%s %s", o->build.compiler, o->build.flags);
        pen_fixed(&p, (double)o->seed, 0);
        pen_printf(&p, "%.12s", o->config_sha256);
        pen_text(&p, o->started);
        if (o->interrupted[0])
            pen_printf(&p, "interrupted: %s", o->interrupted);
        else
            pen_text(&p, o->ended);
        pen_put(&p, m->files[m->sources[i].file]); /* also in a comparison */
    }
    return !p.failed;
}
