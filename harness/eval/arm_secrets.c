#include "harness/eval/arm_secrets.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/http.h"
#include "base/term.h"
#include "base/text.h"
#include "generator/http/endpoints.h"

enum { kValueLimit = 16 << 10 };

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

static const char kNone[] = "none";

/* ---- the form of the options ---- */

static bool is_variable(const char *s) {
    return *s && !strchr(DIGITS, *s) && !s[strspn(s, LETTERS DIGITS "_")];
}

bool arm_secret_is_key_env(const char *value) {
    return is_variable(value);
}

bool arm_secret_is_header(const char *value) {
    size_t n = strspn(value, LETTERS DIGITS "-_");
    if (!n || value[n] != ':')
        return false;
    const char *where = value + n + 1;
    return where[0] == '@' ? where[1] != '\0' : is_variable(where);
}

/* ---- reading secrets ---- */

/* True if a header can have this value. */
static bool is_value(const char *s) {
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++)
        if (s[i] < ' ' || s[i] > '~')
            return false;
    return n && s[0] != ' ' && s[n - 1] != ' ';
}

static snap_status read_variable(const char *name, buf *out, snap_err *err) {
    const char *value = getenv(name);
    if (!value || !*value)
        return err_set(err, SNAP_E_USAGE, "its environment variable is not set or empty");
    (void)buf_puts(out, value);
    return buf_check(out, "a secret", err);
}

static snap_status read_secret_file(const char *path, buf *out, snap_err *err) {
    size_t from = out->len;
    snap_status st = fs_read_regular(path, out, err);
    if (st != SNAP_OK)
        return st;
    while (out->len > from && strchr("\r\n", out->data[out->len - 1]))
        out->data[--out->len] = '\0';
    return strlen(buf_str(out)) == out->len
               ? SNAP_OK
               : err_set(err, SNAP_E_USAGE, "its file contains a NUL byte");
}

/* Reads a secret from a variable or from "@FILE". @before comes first in *out. */
static snap_status read_secret(const char *before, const char *where, arena *mem, const char **out,
                               snap_err *err) {
    buf text = {.limit = kValueLimit};
    (void)buf_puts(&text, before);
    size_t from = text.len;
    snap_status st = where[0] == '@' ? read_secret_file(where + 1, &text, err)
                                     : read_variable(where, &text, err);
    if (st == SNAP_OK && !is_value(buf_str(&text) + from))
        st = err_set(err, SNAP_E_USAGE,
                     "the value is empty or has a character that a header cannot have");
    *out = st == SNAP_OK ? arena_strdup(mem, buf_str(&text)) : NULL;
    if (st == SNAP_OK && !*out)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a secret");
    buf_release(&text);
    return st;
}

static snap_status read_header(const char *header, arena *mem, const char **out, snap_err *err) {
    size_t n = strcspn(header, ":");
    buf name = {0};
    (void)buf_printf(&name, "%.*s: ", (int)n, header);
    snap_status st = buf_check(&name, "a header", err);
    if (st == SNAP_OK)
        st = read_secret(buf_str(&name), header + n + 1, mem, out, err);
    if (st != SNAP_OK)
        err_prefix(err, "header %.*s", (int)n, header);
    buf_release(&name);
    return st;
}

static snap_status read_own(const eval_arm *arm, arena *mem, generator_options *out,
                            snap_err *err) {
    snap_status st = SNAP_OK;
    const char **headers = arena_alloc(mem, ARM_HEADERS, sizeof *headers);
    if (!headers)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the headers");
    if (arm->key_env && strcmp(arm->key_env, kNone) != 0) {
        st = read_secret("", arm->key_env, mem, &out->api_key, err);
        if (st != SNAP_OK)
            err_prefix(err, "key_env");
    }
    for (int i = 0; i < arm->n_headers && st == SNAP_OK; i++)
        st = read_header(arm->headers[i], mem, &headers[i], err);
    if (st == SNAP_OK) {
        out->headers = headers;
        out->n_headers = arm->n_headers;
    }
    return st;
}

/* ---- where secrets may go ---- */

/* Sets *url to the first server to which a secret would travel unencrypted through a network; NULL
 * = none. The text belongs to @servers. */
static snap_status find_open_server(const eval_arm *arm, endpoints *servers, const char **url,
                                    snap_err *err) {
    snap_status st = endpoints_parse(servers, arm->spec, err);
    *url = NULL;
    for (int i = 0; i < servers->n && !*url; i++)
        *url = http_is_private(servers->list[i].chat_url) ? NULL : servers->list[i].chat_url;
    return st;
}

static snap_status refuse_general(const generate_options *opt, const char *why, snap_err *err) {
    return err_set(err, SNAP_E_USAGE,
                   "the API key in %s is not sent to it, because %s: give the arm a key of its own "
                   "with key_env=NAME on the command line, or key_env=none if it needs none",
                   opt->api_key_from ? opt->api_key_from : "the environment", why);
}

static snap_status read_general(const eval_arm *arm, const generate_options *opt,
                                const char *open_url, generator_options *out, snap_err *err) {
    if (!opt->api_key || !*opt->api_key)
        return SNAP_OK;
    if (arm->from_file)
        return refuse_general(opt, "its address is from a configuration file", err);
    if (open_url)
        return refuse_general(opt, "its address is neither https nor on this machine", err);
    out->api_key = opt->api_key;
    return SNAP_OK;
}

static bool has_own(const eval_arm *arm) {
    return (arm->key_env && strcmp(arm->key_env, kNone) != 0) || arm->n_headers;
}

static snap_status read_all(const eval_arm *arm, const generate_options *opt, arena *mem,
                            generator_options *out, bool warn, snap_err *err) {
    endpoints servers = {0};
    const char *open_url;
    snap_status st = SNAP_OK;
    if (!text_equal(arm->kind, "http"))
        return SNAP_OK;
    TRY(find_open_server(arm, &servers, &open_url, err));
    if (has_own(arm) && arm->from_file)
        TRY(err_set(err, SNAP_E_USAGE,
                    "key_env and header are refused in a configuration file: give the arm on the "
                    "command line"));
    if (has_own(arm) && open_url && warn)
        term_warn("arm '%s': its key or headers are sent unencrypted to %s", arm->name, open_url);
    if (arm->key_env || arm->n_headers)
        TRY(read_own(arm, mem, out, err));
    else
        TRY(read_general(arm, opt, open_url, out, err));
cleanup:
    endpoints_release(&servers);
    if (st != SNAP_OK)
        err_prefix(err, "arm '%s'", arm->name);
    return st;
}

snap_status arm_secrets_read(const eval_arm *arm, const generate_options *opt, arena *mem,
                             generator_options *out, snap_err *err) {
    return read_all(arm, opt, mem, out, false, err);
}

snap_status arm_secrets_check_one(const eval_arm *arm, const generate_options *opt, snap_err *err) {
    arena mem = {0};
    generator_options unused = {0};
    snap_status st = read_all(arm, opt, &mem, &unused, true, err);
    arena_release(&mem);
    return st;
}

snap_status arm_secrets_check(const eval_plan *plan, const generate_options *opt, snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < plan->n_arms && st == SNAP_OK; i++)
        st = arm_secrets_check_one(&plan->arms[i], opt, err);
    return st;
}
