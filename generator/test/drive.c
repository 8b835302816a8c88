#include "generator/test/drive.h"

#include <stdlib.h>
#include <string.h>

static bool source(void *ctx, gen_request *out) {
    static const gen_message messages[] = {{"system", "Be brief."}, {"user", "1+1? \xE2\x88\x91"}};
    drive *d = ctx;
    if (d->given == d->total)
        return false;
    int i = d->given++;
    *out = (gen_request){
        .id = i,
        .task = "t",
        .problem = "p",
        .sample = i,
        .messages = messages,
        .n_messages = 2,
        .sampling = {
            .temperature = 0.5, .top_p = 0.95, .max_tokens = 100, .seed = 1000 + (uint64_t)i}};
    return true;
}

static char *copy(const char *s) {
    return s ? strdup(s) : NULL;
}

static snap_status sink(void *ctx, const gen_request *req, const gen_result *res, snap_err *err) {
    drive *d = ctx;
    d->kept[d->n_kept++] = (kept){.id = req->id,
                                  .failed = res->failed,
                                  .error = copy(res->error),
                                  .text = copy(res->text),
                                  .reasoning = copy(res->reasoning),
                                  .finish_reason = copy(res->finish_reason),
                                  .res = *res};
    if (d->fail_after && d->n_kept == d->fail_after)
        return err_set(err, SNAP_E_IO, "the disk is full");
    return SNAP_OK;
}

snap_status drive_run(drive *d, generator *g, int total) {
    d->total = total;
    return generator_run(g, source, d, sink, d, &d->err);
}

void drive_release(drive *d) {
    for (int i = 0; i < d->n_kept; i++) {
        free(d->kept[i].error);
        free(d->kept[i].text);
        free(d->kept[i].reasoning);
        free(d->kept[i].finish_reason);
    }
    *d = (drive){0};
}

const kept *drive_result(const drive *d, int64_t id) {
    for (int i = 0; i < d->n_kept; i++)
        if (d->kept[i].id == id)
            return &d->kept[i];
    return NULL;
}
