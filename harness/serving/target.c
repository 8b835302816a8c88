#include "harness/serving/target.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "generator/settings.h"
#include "harness/eval/arm_secrets.h"

enum { kDeadlineS = 14400 };

static snap_status no_memory(snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "out of memory for an arm");
}

static snap_status check_keys(const eval_arm *arm, snap_err *err) {
    if (!text_equal(arm->kind, "http"))
        return err_set(err, SNAP_E_USAGE,
                       "arm '%s' is no server: give its URL, for example "
                       "%s=http://127.0.0.1:8000/v1",
                       arm->name, arm->name);
    const struct {
        const char *key;
        bool given;
    } keys[] = {{"retries", arm->max_retries >= 0},
                {"rpm", arm->rpm > 0},
                {"tpm", arm->tpm > 0},
                {"in_flight", arm->in_flight > 0},
                {"device", arm->device != NULL},
                {"context", arm->context > 0},
                {"cache_mb", arm->cache_mb > 0},
                {"threads", arm->threads > 0}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].given)
            return err_set(err, SNAP_E_USAGE,
                           "arm '%s': '%s' has no meaning here, because the load point decides "
                           "when requests are sent, and none is repeated",
                           arm->name, keys[i].key);
    return SNAP_OK;
}

/* Adds "ignore_eos" to the arm's body, unless the arm sets that member itself. */
static snap_status add_ignore_eos(gen_settings *s, arena *mem, snap_err *err) {
    js *body = s->body ? js_parse(s->body, strlen(s->body), "body", err) : js_new_object();
    buf text = {0};
    snap_status st = body ? SNAP_OK : s->body ? SNAP_E_USAGE : no_memory(err);
    TRY(st);
    if (!js_has(body, "ignore_eos") && !js_set_bool(body, "ignore_eos", true))
        TRY(no_memory(err));
    TRY(js_write(body, JS_COMPACT, &text, err));
    s->body = arena_strdup(mem, buf_str(&text));
    TRY(s->body ? SNAP_OK : no_memory(err));
cleanup:
    buf_release(&text);
    js_free(body);
    return st;
}

static gen_sampling sampling_of(const eval_arm *arm, const gen_sampling *common) {
    gen_sampling s = *common;
    s.temperature = arm->temperature >= 0 ? arm->temperature : s.temperature;
    s.top_p = arm->top_p > 0 ? arm->top_p : s.top_p;
    s.max_tokens = arm->max_tokens ? arm->max_tokens : s.max_tokens;
    s.top_k = arm->has_top_k ? arm->more.top_k : s.top_k;
    s.min_p = arm->has_min_p ? arm->more.min_p : s.min_p;
    s.presence_penalty =
        arm->has_presence_penalty ? arm->more.presence_penalty : s.presence_penalty;
    s.frequency_penalty =
        arm->has_frequency_penalty ? arm->more.frequency_penalty : s.frequency_penalty;
    s.repetition_penalty =
        arm->has_repetition_penalty ? arm->more.repetition_penalty : s.repetition_penalty;
    return s;
}

/* Makes the header lines from what arm_secrets_read() found. */
static snap_status take_secrets(const generator_options *g, arena *mem, secret_lines *out,
                                snap_err *err) {
    int n = 0;
    const char **lines = arena_alloc(mem, (size_t)g->n_headers + 1, sizeof *lines);
    buf bearer = {0};
    if (!lines)
        return no_memory(err);
    if (g->api_key && *g->api_key) {
        (void)buf_printf(&bearer, "%s%s", SECRETS_BEARER, g->api_key);
        lines[n] = bearer.failed ? NULL : arena_strdup(mem, buf_str(&bearer));
        buf_release(&bearer);
        if (!lines[n++])
            return no_memory(err);
    }
    for (int i = 0; i < g->n_headers; i++)
        lines[n++] = g->headers[i];
    *out = (secret_lines){lines, n};
    return SNAP_OK;
}

snap_status serving_target_make(const eval_arm *arm, const gen_sampling *sampling, bool ignore_eos,
                                const generate_options *opt, arena *mem, serving_target *out,
                                snap_err *err) {
    generator_options secrets = {0};
    snap_status st;
    *out = (serving_target){.name = arm->name,
                            .model = arm->model,
                            .settings = arm->settings,
                            .sampling = sampling_of(arm, sampling),
                            .stream = !arm->no_stream && !opt->no_stream,
                            .silence_s = arm->timeout_s,
                            .deadline_s = arm->deadline_s > 0 ? arm->deadline_s : kDeadlineS};
    TRY(check_keys(arm, err));
    TRY(gen_settings_check(&out->settings, err));
    if (ignore_eos)
        TRY(add_ignore_eos(&out->settings, mem, err));
    TRY(endpoints_parse(&out->servers, arm->spec, err));
    TRY(arm_secrets_check_one(arm, opt, err));
    TRY(arm_secrets_read(arm, opt, mem, &secrets, err));
    TRY(take_secrets(&secrets, mem, &out->secrets, err));
cleanup:
    return st;
}

void serving_target_release(serving_target *t) {
    endpoints_release(&t->servers);
}
