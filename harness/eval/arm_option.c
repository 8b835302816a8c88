#include "harness/eval/arm_option.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/share.h"
#include "base/text.h"
#include "generator/settings.h"
#include "harness/eval/arm_request.h"
#include "harness/eval/arm_secrets.h"

enum { kLongestName = 40 };

/* KEY_NOT is a flag that is stored negated. */
typedef enum {
    KEY_TEXT,
    KEY_NOT,
    KEY_INT,   /* int */
    KEY_COUNT, /* int64_t */
    KEY_NUM,
    KEY_SEED,
    KEY_ENV,
    KEY_HEADER
} key_type;

/* A key of the option, the field of the arm that receives its value, the allowed range of a number,
 * and the flag that is set with it (0 = none). */
typedef struct {
    const char *name;
    key_type type;
    size_t offset;
    double min, max;
    size_t flag;
} arm_key;

#define MORE(key) offsetof(eval_arm, more.key)
#define HAS(key)  offsetof(eval_arm, has_##key)

static const arm_key keys[] = {
    {"model", KEY_TEXT, offsetof(eval_arm, model), 0, 0, 0},
    {"precision", KEY_TEXT, offsetof(eval_arm, precision), 0, 0, 0},
    {"device", KEY_TEXT, offsetof(eval_arm, device), 0, 0, 0},
    {"layout", KEY_TEXT, offsetof(eval_arm, layout), 0, 0, 0},
    {"stream", KEY_NOT, offsetof(eval_arm, no_stream), 0, 0, 0},
    {"retries", KEY_INT, offsetof(eval_arm, max_retries), 0, 1000, 0},
    {"timeout", KEY_NUM, offsetof(eval_arm, timeout_s), 0.001, 1e6, 0},
    {"deadline", KEY_NUM, offsetof(eval_arm, deadline_s), 0.001, 1e6, 0},
    {"rpm", KEY_NUM, offsetof(eval_arm, rpm), 0.001, 1e9, 0},
    {"tpm", KEY_NUM, offsetof(eval_arm, tpm), 0.001, 1e12, 0},
    {"in_flight", KEY_INT, offsetof(eval_arm, in_flight), 1, 4096, 0},
    {"context", KEY_INT, offsetof(eval_arm, context), 1, 1 << 20, 0},
    {"cache_mb", KEY_INT, offsetof(eval_arm, cache_mb), 1, 1 << 24, 0},
    {"threads", KEY_INT, offsetof(eval_arm, threads), 1, 1024, 0},
    {"seed", KEY_SEED, offsetof(eval_arm, seed), 0, 9007199254740991.0, 0},
    {"temperature", KEY_NUM, offsetof(eval_arm, temperature), 0, 100, 0},
    {"top_p", KEY_NUM, offsetof(eval_arm, top_p), 1e-9, 1, 0},
    {"max_tokens", KEY_INT, offsetof(eval_arm, max_tokens), 1, INT_MAX, 0},
    {"max_completion_tokens", KEY_INT, offsetof(eval_arm, max_tokens), 1, INT_MAX,
     offsetof(eval_arm, settings.completion_limit)},
    {"top_k", KEY_INT, MORE(top_k), 0, INT_MAX, HAS(top_k)},
    {"min_p", KEY_NUM, MORE(min_p), 0, 1, HAS(min_p)},
    {"presence_penalty", KEY_NUM, MORE(presence_penalty), -2, 2, HAS(presence_penalty)},
    {"frequency_penalty", KEY_NUM, MORE(frequency_penalty), -2, 2, HAS(frequency_penalty)},
    {"repetition_penalty", KEY_NUM, MORE(repetition_penalty), 1e-9, 2, HAS(repetition_penalty)},
    {"thinking_budget", KEY_COUNT, offsetof(eval_arm, settings.thinking_budget), 1, INT_MAX, 0},
    {"key_env", KEY_ENV, offsetof(eval_arm, key_env), 0, 0, 0},
    {"header", KEY_HEADER, offsetof(eval_arm, headers), 0, 0, 0},
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
    else if (k->type == KEY_COUNT)
        *(int64_t *)value = i;
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
    if (k->flag)
        *(bool *)((char *)arm + k->flag) = true;
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
    char shown[80];   /* the arm's name for messages: the text up to its first '=', ',', ':', '/'
                         or '@'. The rest may hold a key or a password by mistake */
    eval_arm *arm;
    bool has_spec;
    buf kept;  /* the option with the content of files in place of @FILE */
    bool read; /* a file was read */
    arena *mem;
} parsing;

/* Reports that a key cannot have this value. The message does not quote the value of a secret. */
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

/* Sets a key that arm_request.h has. For a local arm, "template" is a name. */
static snap_status set_request(parsing *p, const char *name, const char *value, snap_err *err) {
    (void)buf_printf(&p->kept, ",%s=", name);
    if (strcmp(name, "template") == 0 && text_equal(p->arm->kind, "local")) {
        p->arm->chat_template = value;
        (void)buf_puts(&p->kept, value);
        return *value ? SNAP_OK
                      : err_set(err, SNAP_E_USAGE, "%s %s: 'template' must not be ''", p->flag,
                                p->shown);
    }
    if (p->arm->from_file && arm_request_names_file(name, value))
        return err_set(
            err, SNAP_E_USAGE,
            "%s %s: an arm from a configuration file cannot read '%s' from a file: write "
            "the text in its place, or give %s on the command line",
            p->flag, p->shown, name, p->flag);
    snap_status st =
        arm_request_set(&p->arm->settings, name, value, p->mem, &p->kept, &p->read, err);
    if (st != SNAP_OK)
        err_prefix(err, "%s %s", p->flag, p->shown);
    return st;
}

static snap_status unknown_key(const parsing *p, const char *name, snap_err *err) {
    enum { kKeys = sizeof keys / sizeof *keys };
    const char *known[kKeys + ARM_REQUEST_KEYS + 1];
    char list[500], hint[NEAREST_HINT];
    size_t n = 0;
    for (size_t i = 0; i < kKeys; i++)
        known[i] = keys[i].name;
    arm_request_keys(known + kKeys);
    list[0] = '\0';
    for (size_t i = 0; known[i] && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", known[i]);
    return err_set(err, SNAP_E_USAGE, "%s %s: unknown key '%.40s'%s; known: %s", p->flag, p->shown,
                   name, nearest_hint(name, known, "", hint), list);
}

static snap_status set_key(parsing *p, const char *name, const char *value, snap_err *err) {
    if (arm_request_has(name))
        return set_request(p, name, value, err);
    (void)buf_printf(&p->kept, ",%s=%s", name, value);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].name, name) == 0)
            return store(&keys[i], p->arm, value) ? SNAP_OK : refuse_value(p, &keys[i], value, err);
    return unknown_key(p, name, err);
}

bool arm_name_is_valid(const char *name, size_t n) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return n && n <= kLongestName && strspn(name, allowed) >= n;
}

static snap_status check_name(const parsing *p, snap_err *err) {
    if (arm_name_is_valid(p->arm->name, strlen(p->arm->name)))
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
static snap_status take_part(parsing *p, const char *part, size_t n, snap_err *err) {
    char *text = arena_strndup(p->mem, part, n);
    if (!text)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %s", p->flag);
    char *equals = strchr(text, '=');
    if (!equals && !p->has_spec)
        return err_set(err, SNAP_E_USAGE, "%s %s is not NAME=GENERATOR", p->flag, p->shown);
    if (!equals)
        return err_set(err, SNAP_E_USAGE, "%s %s: '%s' is not key=value", p->flag, p->shown, text);
    *equals = '\0';
    if (p->has_spec)
        return set_key(p, text, equals + 1, err);
    p->arm->name = text;
    (void)buf_append(&p->kept, part, n);
    snap_status st = check_name(p, err);
    return st == SNAP_OK ? set_spec(p, equals + 1, err) : st;
}

/* The length of the list of numbers "0,1,2" at the start of @s, without a comma after it. */
static size_t numbers_length(const char *s) {
    size_t n = strspn(s, "0123456789");
    while (s[n] == ',') {
        size_t more = strspn(s + n + 1, "0123456789"), end = n + 1 + more;
        if (!more || (s[end] && s[end] != ','))
            break;
        n = end;
    }
    return n;
}

/* The length of the part at the start of @s: up to the next comma, or to the end of a value that is
 * JSON or a list of CUDA devices. */
static size_t part_length(const char *s, bool is_key) {
    static const char kDevices[] = "device=cuda:";
    size_t n = strcspn(s, ","), key = strcspn(s, "=,");
    if (is_key && text_starts(s, kDevices)) {
        size_t list = sizeof kDevices - 1 + numbers_length(s + sizeof kDevices - 1);
        return list > n ? list : n;
    }
    bool json = is_key && s[key] == '=' && s[key + 1] && strchr("{[\"", s[key + 1]);
    return json ? key + 1 + arm_request_json_length(s + key + 1) : n;
}

static snap_status take_parts(parsing *p, const char *text, snap_err *err) {
    snap_status st = SNAP_OK;
    for (const char *at = text;; at++) {
        size_t n = part_length(at, p->has_spec);
        if (!n)
            return err_set(err, SNAP_E_USAGE, "%s: '%s' has an empty part", p->flag, p->shown);
        st = take_part(p, at, n, err);
        at += n;
        if (st != SNAP_OK || !*at)
            return st;
        if (*at != ',')
            return err_set(err, SNAP_E_USAGE,
                           "%s %s: a comma must follow the end of a JSON value, not '%.20s'",
                           p->flag, p->shown, at);
    }
}

snap_status arm_parse(const char *flag, const char *text, bool from_file, arena *mem, eval_arm *out,
                      snap_err *err) {
    snap_status st;
    *out = (eval_arm){.max_retries = -1, .temperature = -1, .from_file = from_file};
    parsing p = {.flag = flag, .arm = out, .mem = mem};
    size_t shown = strcspn(text, "=,:/@"); /* a URL without NAME= may hold a password */
    (void)snprintf(p.shown, sizeof p.shown, "%.*s%s", (int)shown, text,
                   text[shown] && strchr(":/@", text[shown]) ? "..." : "");
    TRY(text_is_utf8(text, strlen(text))
            ? SNAP_OK
            : err_set(err, SNAP_E_USAGE, "%s: the text is not UTF-8", flag));
    TRY(take_parts(&p, text, err));
    TRY(buf_check(&p.kept, flag, err));
    if (p.read && !(out->text = arena_strdup(mem, buf_str(&p.kept))))
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for %s", flag));
    if ((st = gen_settings_check(&(gen_settings){.body = out->settings.body}, err)) != SNAP_OK)
        err_prefix(err, "%s %s", flag, p.shown);
cleanup:
    buf_release(&p.kept);
    return st;
}
