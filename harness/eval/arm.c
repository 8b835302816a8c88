#include "harness/eval/arm.h"

#include <limits.h>
#include <string.h>

#include "base/text.h"

enum { kLongestName = 40 };

typedef enum { KEY_TEXT, KEY_BOOL, KEY_INT, KEY_NUM, KEY_SEED } key_type;

/* A key of the list, where its value goes, and what it may be. */
typedef struct {
    const char *name;
    key_type type;
    void *value;
    double min, max;
} arm_key;

static bool parse_bool(const char *s, bool *out) {
    *out = strcmp(s, "true") == 0 || strcmp(s, "1") == 0;
    return *out || strcmp(s, "false") == 0 || strcmp(s, "0") == 0;
}

/* Stores a value; false when the text is none of that type or out of range. */
static bool store(const arm_key *k, const char *s) {
    int64_t i = 0;
    double d = 0;
    bool yes;
    switch (k->type) {
    case KEY_TEXT:
        *(const char **)k->value = s;
        return *s != '\0';
    case KEY_BOOL:
        if (!parse_bool(s, &yes))
            return false;
        *(bool *)k->value = yes;
        return true;
    case KEY_NUM:
        if (!text_to_double(s, &d) || d < k->min || d > k->max)
            return false;
        *(double *)k->value = d;
        return true;
    default:
        break;
    }
    if (!text_to_int(s, &i) || (double)i < k->min || (double)i > k->max)
        return false;
    if (k->type == KEY_SEED)
        *(uint64_t *)k->value = (uint64_t)i;
    else
        *(int *)k->value = (int)i;
    return true;
}

typedef struct {
    const char *whole; /* for messages */
    eval_arm *arm;
    bool stream, has_spec;
    arena *mem;
} parsing;

static snap_status set_key(parsing *p, const char *name, const char *value, snap_err *err) {
    eval_arm *a = p->arm;
    const arm_key keys[] = {
        {"model", KEY_TEXT, &a->model, 0, 0},
        {"precision", KEY_TEXT, &a->precision, 0, 0},
        {"stream", KEY_BOOL, &p->stream, 0, 0},
        {"retries", KEY_INT, &a->max_retries, 0, 1000},
        {"timeout", KEY_NUM, &a->timeout_s, 0.001, 1e6},
        {"in_flight", KEY_INT, &a->in_flight, 1, 4096},
        {"seed", KEY_SEED, &a->seed, 0, 9007199254740991.0},
        {"temperature", KEY_NUM, &a->temperature, 0, 100},
        {"top_p", KEY_NUM, &a->top_p, 1e-9, 1},
        {"max_tokens", KEY_INT, &a->max_tokens, 1, INT_MAX},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(keys[i].name, name) != 0)
            continue;
        a->has_seed |= keys[i].type == KEY_SEED;
        return store(&keys[i], value) ? SNAP_OK
                                      : err_set(err, SNAP_E_USAGE, "--arm %s: '%s' can't be '%s'",
                                                p->whole, name, value);
    }
    return err_set(err, SNAP_E_USAGE,
                   "--arm %s: unknown key '%s' (known: model, precision, stream, retries, timeout, "
                   "in_flight, seed, temperature, top_p, max_tokens)",
                   p->whole, name);
}

static snap_status check_name(const parsing *p, snap_err *err) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *name = p->arm->name;
    size_t n = strlen(name);
    if (n && n <= kLongestName && strspn(name, allowed) == n)
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE,
                   "--arm %s: the name must be 1..%d letters, digits, '.', '_' or '-'", p->whole,
                   kLongestName);
}

static snap_status set_spec(parsing *p, const char *spec, snap_err *err) {
    static const struct {
        const char *prefix, *kind;
    } kinds[] = {{"http://", "http"}, {"https://", "http"}, {"replay:", "replay"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (text_starts(spec, kinds[i].prefix))
            p->arm->kind = kinds[i].kind;
    p->arm->spec = spec;
    p->has_spec = true;
    if (!p->arm->kind)
        return err_set(err, SNAP_E_USAGE,
                       "--arm %s: generator '%s' is none of http://..., https://..., replay:FILE",
                       p->whole, spec);
    if (strcmp(p->arm->kind, "http") == 0 && strchr(spec, '@'))
        return err_set(err, SNAP_E_USAGE,
                       "an arm's URL must not hold credentials: set SNAPMLA_API_KEY instead");
    return SNAP_OK;
}

/* One part between commas: first NAME=GENERATOR, then keys. */
static snap_status take_part(void *ctx, const char *part, snap_err *err) {
    parsing *p = ctx;
    char *text = arena_strdup(p->mem, part);
    if (!text)
        return err_set(err, SNAP_E_NOMEM, "out of memory for --arm");
    char *equals = strchr(text, '=');
    if (!equals)
        return err_set(err, SNAP_E_USAGE, "--arm %s: '%s' is not %s", p->whole, part,
                       p->has_spec ? "key=value" : "NAME=GENERATOR");
    *equals = '\0';
    if (p->has_spec)
        return set_key(p, text, equals + 1, err);
    p->arm->name = text;
    snap_status st = check_name(p, err);
    return st == SNAP_OK ? set_spec(p, equals + 1, err) : st;
}

snap_status arm_parse(const char *text, arena *mem, eval_arm *out, snap_err *err) {
    *out = (eval_arm){.max_retries = -1, .temperature = -1};
    parsing p = {.whole = text, .arm = out, .stream = true, .mem = mem};
    snap_status st = text_split(text, ',', "--arm", take_part, &p, err);
    out->no_stream = !p.stream;
    return st;
}
