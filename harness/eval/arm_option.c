#include "harness/eval/arm_option.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "harness/eval/arm_secrets.h"
#include "harness/share.h"

enum { kLongestName = 40 };

/* KEY_NOT is a flag that is stored negated. */
typedef enum { KEY_TEXT, KEY_NOT, KEY_INT, KEY_NUM, KEY_SEED, KEY_ENV, KEY_HEADER } key_type;

/* A key of the option, the field of the arm that receives its value, and the allowed range of a
 * number. */
typedef struct {
    const char *name;
    key_type type;
    size_t offset;
    double min, max;
} arm_key;

static const arm_key keys[] = {
    {"model", KEY_TEXT, offsetof(eval_arm, model), 0, 0},
    {"precision", KEY_TEXT, offsetof(eval_arm, precision), 0, 0},
    {"device", KEY_TEXT, offsetof(eval_arm, device), 0, 0},
    {"stream", KEY_NOT, offsetof(eval_arm, no_stream), 0, 0},
    {"retries", KEY_INT, offsetof(eval_arm, max_retries), 0, 1000},
    {"timeout", KEY_NUM, offsetof(eval_arm, timeout_s), 0.001, 1e6},
    {"deadline", KEY_NUM, offsetof(eval_arm, deadline_s), 0.001, 1e6},
    {"rpm", KEY_NUM, offsetof(eval_arm, rpm), 0.001, 1e9},
    {"tpm", KEY_NUM, offsetof(eval_arm, tpm), 0.001, 1e12},
    {"in_flight", KEY_INT, offsetof(eval_arm, in_flight), 1, 4096},
    {"context", KEY_INT, offsetof(eval_arm, context), 1, 1 << 20},
    {"cache_mb", KEY_INT, offsetof(eval_arm, cache_mb), 1, 1 << 24},
    {"threads", KEY_INT, offsetof(eval_arm, threads), 1, 1024},
    {"template", KEY_TEXT, offsetof(eval_arm, chat_template), 0, 0},
    {"seed", KEY_SEED, offsetof(eval_arm, seed), 0, 9007199254740991.0},
    {"temperature", KEY_NUM, offsetof(eval_arm, temperature), 0, 100},
    {"top_p", KEY_NUM, offsetof(eval_arm, top_p), 1e-9, 1},
    {"max_tokens", KEY_INT, offsetof(eval_arm, max_tokens), 1, INT_MAX},
    {"key_env", KEY_ENV, offsetof(eval_arm, key_env), 0, 0},
    {"header", KEY_HEADER, offsetof(eval_arm, headers), 0, 0},
};

static bool parse_bool(const char *s, bool *out) {
    *out = strcmp(s, "true") == 0 || strcmp(s, "1") == 0;
    return *out || strcmp(s, "false") == 0 || strcmp(s, "0") == 0;
}

static bool store_text(void *value, const char *s) {
    *(const char **)value = s;
    return *s != '\0';
}

static bool store_not(void *value, const char *s) {
    bool yes;
    if (!parse_bool(s, &yes))
        return false;
    *(bool *)value = !yes;
    return true;
}

static bool store_num(const arm_key *k, void *value, const char *s) {
    double d;
    if (!text_to_double(s, &d) || d < k->min || d > k->max)
        return false;
    *(double *)value = d;
    return true;
}

static bool store_int(const arm_key *k, void *value, const char *s) {
    int64_t i;
    if (!text_to_int(s, &i) || (double)i < k->min || (double)i > k->max)
        return false;
    if (k->type == KEY_SEED)
        *(uint64_t *)value = (uint64_t)i;
    else
        *(int *)value = (int)i;
    return true;
}

static bool store_header(eval_arm *arm, const char *s) {
    if (!arm_secret_is_header(s) || arm->n_headers == ARM_HEADERS)
        return false;
    arm->headers[arm->n_headers++] = s;
    return true;
}

/* Returns false if the text is empty, does not have the key's type or is out of range. */
static bool store(const arm_key *k, eval_arm *arm, const char *s) {
    void *value = (char *)arm + k->offset;
    arm->has_seed |= k->type == KEY_SEED;
    switch (k->type) {
    case KEY_TEXT:
        return store_text(value, s);
    case KEY_NOT:
        return store_not(value, s);
    case KEY_NUM:
        return store_num(k, value, s);
    case KEY_ENV:
        return arm_secret_is_key_env(s) && store_text(value, s);
    case KEY_HEADER:
        return store_header(arm, s);
    default:
        return store_int(k, value, s);
    }
}

typedef struct {
    const char *flag; /* for messages */
    char shown[80];   /* the option up to its first '=', for messages: the rest may hold a key that
                         was written there by mistake */
    eval_arm *arm;
    bool has_spec;
    arena *mem;
} parsing;

/* A value that does not fit. That of a secret is not quoted. */
static snap_status refuse_value(const parsing *p, const arm_key *k, const char *value,
                                snap_err *err) {
    if (k->type == KEY_ENV)
        return err_set(err, SNAP_E_USAGE,
                       "%s %s: 'key_env' must be the name of an environment variable, without $, "
                       "or none; the key itself does not belong here",
                       p->flag, p->shown);
    if (k->type == KEY_HEADER)
        return err_set(err, SNAP_E_USAGE,
                       "%s %s: 'header' must be NAME:VARIABLE (an environment variable, without $) "
                       "or NAME:@FILE, at most %d times; the value itself does not belong here",
                       p->flag, p->shown, (int)ARM_HEADERS);
    return err_set(err, SNAP_E_USAGE, "%s %s: '%s' must not be '%s'", p->flag, p->shown, k->name,
                   value);
}

static snap_status set_key(parsing *p, const char *name, const char *value, snap_err *err) {
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].name, name) == 0)
            return store(&keys[i], p->arm, value) ? SNAP_OK : refuse_value(p, &keys[i], value, err);
    return err_set(
        err, SNAP_E_USAGE,
        "%s %s: unknown key '%s' (known: model, precision, device, stream, retries, timeout, "
        "deadline, rpm, tpm, in_flight, context, cache_mb, threads, template, seed, temperature, "
        "top_p, max_tokens, key_env, header)",
        p->flag, p->shown, name);
}

static snap_status check_name(const parsing *p, snap_err *err) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *name = p->arm->name;
    size_t n = strlen(name);
    if (n && n <= kLongestName && strspn(name, allowed) == n)
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE,
                   "%s %s: the name must be 1..%d letters, digits, '.', '_' or '-'", p->flag,
                   p->shown, kLongestName);
}

/* If the folder of "local:DIR" does not exist in the working directory, replaces it by the folder
 * of that name among the program's data files (share_find()), if there is one. */
static snap_status find_model(parsing *p, snap_err *err) {
    static const char kPrefix[] = "local:";
    buf spec = {0};
    const char *dir = p->arm->spec + sizeof kPrefix - 1;
    char *found = *dir ? share_find(dir) : NULL;
    if (!found || strcmp(found, dir) == 0) {
        free(found);
        return SNAP_OK;
    }
    (void)buf_printf(&spec, "%s%s", kPrefix, found);
    p->arm->spec = arena_strdup(p->mem, buf_str(&spec));
    bool ok = !spec.failed && p->arm->spec;
    free(found);
    buf_release(&spec);
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for %s", p->flag);
}

static snap_status set_spec(parsing *p, const char *spec, snap_err *err) {
    static const struct {
        const char *prefix, *kind;
    } kinds[] = {
        {"http://", "http"}, {"https://", "http"}, {"local:", "local"}, {"replay:", "replay"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (text_starts(spec, kinds[i].prefix))
            p->arm->kind = kinds[i].kind;
    p->arm->spec = spec;
    p->has_spec = true;
    bool is_url = !p->arm->kind || strcmp(p->arm->kind, "http") == 0;
    if (is_url && strchr(spec, '@'))
        return err_set(err, SNAP_E_USAGE,
                       "%s %s: an arm's URL must not hold credentials: use key_env=NAME, where "
                       "NAME is an environment variable with the API key",
                       p->flag, p->shown);
    if (!p->arm->kind)
        return err_set(err, SNAP_E_USAGE,
                       "%s %s: generator '%s' must be http://..., https://..., local:DIR or "
                       "replay:FILE",
                       p->flag, p->shown, spec);
    return strcmp(p->arm->kind, "local") == 0 ? find_model(p, err) : SNAP_OK;
}

/* Handles one part between commas. The first part is NAME=GENERATOR, the others are keys. */
static snap_status take_part(void *ctx, const char *part, snap_err *err) {
    parsing *p = ctx;
    char *text = arena_strdup(p->mem, part);
    if (!text)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %s", p->flag);
    char *equals = strchr(text, '=');
    if (!equals)
        return err_set(err, SNAP_E_USAGE, "%s %s: '%s' is not %s", p->flag, p->shown, part,
                       p->has_spec ? "key=value" : "NAME=GENERATOR");
    *equals = '\0';
    if (p->has_spec)
        return set_key(p, text, equals + 1, err);
    p->arm->name = text;
    snap_status st = check_name(p, err);
    return st == SNAP_OK ? set_spec(p, equals + 1, err) : st;
}

snap_status arm_parse(const char *flag, const char *text, arena *mem, eval_arm *out,
                      snap_err *err) {
    *out = (eval_arm){.max_retries = -1, .temperature = -1};
    parsing p = {.flag = flag, .arm = out, .mem = mem};
    (void)snprintf(p.shown, sizeof p.shown, "%.*s", (int)strcspn(text, "=,"), text);
    return text_split(text, ',', flag, take_part, &p, err);
}
