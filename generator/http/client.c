#include "generator/http/client.h"

#include <stdlib.h>
#include <string.h>

#include "generator/http/client_parts.h"

enum { kDeadlineS = 14400 }; /* seconds: enough for 32k tokens at 2.3 tokens per second */

static snap_status client_run(generator *g, gen_source_fn source, void *source_ctx,
                              gen_sink_fn sink, void *sink_ctx, snap_err *err) {
    return session_run((client *)(void *)g, source, source_ctx, sink, sink_ctx, err);
}

static generator_load client_load(const generator *g) {
    return ((const client *)(const void *)g)->load;
}

static void client_free(client *c) {
    if (!c)
        return;
    endpoints_release(&c->servers);
    free(c->model);
    for (int i = 0; i < c->n_secrets; i++)
        free(c->secrets[i]);
    free(c);
}

static void client_close(generator *g) {
    client_free((client *)(void *)g);
}

static const generator_ops client_ops = {
    .run = client_run, .close = client_close, .load = client_load};

static snap_status check_options(const generator_options *opt, snap_err *err) {
    if (opt->in_flight < 0 || opt->in_flight > CLIENT_IN_FLIGHT_MAX)
        return err_set(err, SNAP_E_USAGE, "requests in flight must be 1 to %d, got %d",
                       CLIENT_IN_FLIGHT_MAX, opt->in_flight);
    if (opt->max_retries < -1 || !(opt->timeout_s >= 0 && opt->timeout_s <= 1e6) ||
        !(opt->deadline_s >= 0 && opt->deadline_s <= 1e6))
        return err_set(err, SNAP_E_USAGE,
                       "retries must be at least 0, a timeout and a deadline 0 to 1000000 seconds");
    if (!(opt->requests_per_minute >= 0 && opt->requests_per_minute <= 1e9) ||
        !(opt->tokens_per_minute >= 0 && opt->tokens_per_minute <= 1e12))
        return err_set(err, SNAP_E_USAGE,
                       "requests per minute must be 0 to 1e9, tokens per minute 0 to 1e12");
    for (const char *k = opt->api_key; k && *k; k++)
        if (*k <= ' ' || *k > '~')
            return err_set(err, SNAP_E_USAGE,
                           "the API key contains a character that is not allowed in a header");
    if (opt->n_headers < 0 || opt->n_headers >= CLIENT_SECRETS)
        return err_set(err, SNAP_E_USAGE, "at most %d headers can be added", CLIENT_SECRETS - 1);
    return SNAP_OK;
}

static bool add_secret(client *c, const char *name, const char *value) {
    buf line = {0};
    (void)buf_printf(&line, "%s%s", name, value);
    if (!line.failed)
        c->secrets[c->n_secrets++] = buf_steal(&line);
    buf_release(&line);
    return !line.failed;
}

/* Copies the strings, because the caller may free its own. */
static snap_status take_strings(client *c, const generator_options *opt, snap_err *err) {
    bool ok = true;
    if (opt->model)
        ok = (c->model = strdup(opt->model)) != NULL;
    if (opt->api_key && *opt->api_key)
        ok = ok && add_secret(c, SECRETS_BEARER, opt->api_key);
    for (int i = 0; i < opt->n_headers && ok; i++)
        ok = add_secret(c, "", opt->headers[i]);
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a generator");
}

snap_status client_open(generator **out, const char *urls, const generator_options *opt,
                        const retry_policy *policy, snap_err *err) {
    *out = NULL;
    snap_status st = SNAP_OK;
    client *c = calloc(1, sizeof *c);
    if (!c)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a generator");
    c->base.ops = &client_ops;
    c->stream = !opt->no_stream;
    c->max_retries = opt->max_retries < 0 ? CLIENT_RETRIES : opt->max_retries;
    c->in_flight = opt->in_flight ? opt->in_flight : CLIENT_IN_FLIGHT;
    c->silence_s = opt->timeout_s;
    c->deadline_s = opt->deadline_s > 0 ? opt->deadline_s : kDeadlineS;
    c->rpm = opt->requests_per_minute;
    c->tpm = opt->tokens_per_minute;
    c->cancel = opt->cancel;
    c->policy = *policy;
    TRY(check_options(opt, err));
    TRY(endpoints_parse(&c->servers, urls, err));
    TRY(take_strings(c, opt, err));
    *out = (generator *)c;
    c = NULL;
cleanup:
    client_free(c);
    return st;
}

snap_status gen_http_open(generator **out, const char *spec, const generator_options *opt,
                          snap_err *err) {
    return client_open(out, spec, opt, &RETRY_DEFAULT, err);
}
