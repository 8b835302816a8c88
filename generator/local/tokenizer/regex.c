#include "generator/local/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

enum {
    kPatternMax = 1 << 16,     /* bytes of a pattern */
    kMatchSteps = 1000000,     /* base limit on the steps of a match */
    kMatchStepsPerByte = 64,   /* added for each byte of the text */
    kJitStackMin = 32 << 10,   /* bytes */
    kJitStackMax = 4 << 20,    /* bytes; needed to backtrack byte by byte over a long run */
    kMatchHeapKib = 256 << 10, /* KiB for the interpreter's backtracking points */
};

struct regex {
    pcre2_code *code;
};

struct regex_work {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

/* ---- Oniguruma to PCRE2 ---- */

/* Members of classes as Oniguruma defines them. PCRE2's \s also has U+180E, and its \w differs
 * more. */
#define SPACE "\\t-\\r \\x{85}\\p{Z}"
#define WORD  "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"

typedef struct {
    const char *s;
    size_t n, at;
    bool in_class;
    buf out;
} translator;

static snap_status unsupported(const char *what, size_t n, snap_err *err) {
    return err_set(err, SNAP_E_UNSUPPORTED, "regular expression: '%.*s' is not supported", (int)n,
                   what);
}

/* Translates \uHHHH. */
static snap_status translate_unicode(translator *t, snap_err *err) {
    if (t->n - t->at < 6)
        return unsupported(t->s + t->at, t->n - t->at, err);
    (void)buf_printf(&t->out, "\\x{%.4s}", t->s + t->at + 2);
    t->at += 6;
    return SNAP_OK;
}

static const char *class_escape(char c, bool in_class) {
    switch (c) {
    case 's':
        return in_class ? SPACE : "[" SPACE "]";
    case 'S':
        return in_class ? "\\S\\x{180E}" : "[^" SPACE "]";
    case 'w':
        return in_class ? WORD : "[" WORD "]";
    case 'W':
        return in_class ? NULL : "[^" WORD "]";
    case 'd':
        return "\\p{Nd}";
    case 'D':
        return "\\P{Nd}";
    case 'v':
        return "\\x0B";
    default:
        return NULL;
    }
}

/* The length of a "{name}" after \p or \x; 0 if there is none. */
static size_t braced(const char *s, size_t n) {
    const char *end = n && *s == '{' ? memchr(s, '}', n) : NULL;
    return end ? (size_t)(end - s) + 1 : 0;
}

/* A script's name means Script in Oniguruma, but Script_Extensions in PCRE2: U+3002 is Han only by
 * the latter. Names of categories have one or two letters, so longer names are treated as
 * scripts. */
static void append_braced(translator *t, char escape, const char *s, size_t n) {
    bool negated = n > 1 && s[1] == '^';
    size_t skip = negated ? 2 : 1;
    bool script = escape != 'x' && n - skip - 1 > 2;
    (void)buf_puts(&t->out, negated ? "{^" : "{");
    (void)buf_puts(&t->out, script ? "sc:" : "");
    (void)buf_append(&t->out, s + skip, n - skip);
}

static snap_status translate_escape(translator *t, snap_err *err) {
    if (t->n - t->at < 2)
        return unsupported("\\", 1, err);
    const char *esc = t->s + t->at;
    const char *to = class_escape(esc[1], t->in_class);
    if (esc[1] == 'u')
        return translate_unicode(t, err);
    t->at += 2;
    if (to) {
        (void)buf_puts(&t->out, to);
        return SNAP_OK;
    }
    bool letter = (esc[1] | 32) >= 'a' && (esc[1] | 32) <= 'z';
    if (letter && !strchr(t->in_class ? "pPnrtfaex" : "pPnrtfaexAzZ", esc[1]))
        return unsupported(esc, 2, err);
    size_t n = strchr("pPx", esc[1]) ? braced(esc + 2, t->n - t->at) : 0;
    (void)buf_append(&t->out, esc, 2);
    if (n)
        append_braced(t, esc[1], esc + 2, n);
    t->at += n;
    return SNAP_OK;
}

static snap_status translate_class(translator *t, snap_err *err) {
    const char *s = t->s + t->at;
    size_t left = t->n - t->at;
    if (*s == '[')
        return unsupported(s, left < 2 ? left : 2, err);
    if (*s == '&' && left > 1 && s[1] == '&')
        return unsupported(s, 2, err);
    t->in_class = *s != ']';
    (void)buf_append(&t->out, s, 1);
    t->at++;
    return SNAP_OK;
}

/* Whether the group at @s is supported: capturing without a name, not capturing, look-around,
 * atomic, or caseless. */
static bool group_is_known(const char *s, size_t n) {
    static const char *const known[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?i)"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (n >= strlen(known[i]) && memcmp(s, known[i], strlen(known[i])) == 0)
            return true;
    return n < 2 || (s[1] != '?' && s[1] != '*');
}

/* {n,m} is the same in both syntaxes, and {,n} becomes {0,n}. A + after an interval is refused,
 * because it means repetition in Ruby, but a possessive quantifier in PCRE2. */
static snap_status translate_interval(translator *t, snap_err *err) {
    const char *s = t->s + t->at;
    size_t n = 1;
    while (t->at + n < t->n && strchr("0123456789,", s[n]) && s[n])
        n++;
    bool closed = n > 1 && t->at + n < t->n && s[n] == '}';
    if (!closed)
        return unsupported(s, 1, err);
    if (t->at + n + 1 < t->n && s[n + 1] == '+')
        return unsupported(s, n + 2, err);
    (void)buf_puts(&t->out, s[1] == ',' ? "{0" : "{");
    (void)buf_append(&t->out, s + 1, n);
    t->at += n + 1;
    return SNAP_OK;
}

static snap_status translate_one(translator *t, snap_err *err) {
    const char *s = t->s + t->at;
    if (*s == '\\')
        return translate_escape(t, err);
    if (t->in_class)
        return translate_class(t, err);
    if (*s == '{')
        return translate_interval(t, err);
    if (*s == '(' && !group_is_known(s, t->n - t->at))
        return unsupported(s, t->n - t->at < 4 ? t->n - t->at : 4, err);
    size_t n = 1;
    if (*s == '[') {
        t->in_class = true;
        while (t->at + n < t->n && ((n == 1 && s[n] == '^') || (s[n] == ']' && s[n - 1] != ']')))
            n++; /* a bracket directly after the opening one is a member */
    }
    (void)buf_append(&t->out, s, n);
    t->at += n;
    return SNAP_OK;
}

static snap_status compile_pcre(regex **out, const char *pattern, size_t n, uint32_t flags,
                                snap_err *err) {
    int code;
    PCRE2_SIZE at;
    PCRE2_UCHAR why[160];
    regex *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a regular expression");
    r->code = pcre2_compile((PCRE2_SPTR)pattern, n, flags | PCRE2_UTF, &code, &at, NULL);
    if (!r->code) {
        (void)pcre2_get_error_message(code, why, sizeof why);
        free(r);
        return err_set(err, code == PCRE2_ERROR_HEAP_FAILED ? SNAP_E_NOMEM : SNAP_E_INPUT,
                       "regular expression '%.*s': %s (near %zu)", (int)(n < 80 ? n : 80), pattern,
                       (const char *)why, at);
    }
    (void)pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE); /* if JIT is not permitted, the pattern is
                                                             interpreted */
    *out = r;
    return SNAP_OK;
}

snap_status regex_compile(regex **out, const char *pattern, size_t n, snap_err *err) {
    translator t = {.s = pattern, .n = n};
    snap_status st = SNAP_OK;
    *out = NULL;
    if (n > kPatternMax)
        return err_set(err, SNAP_E_INPUT,
                       "a regular expression has %zu bytes, at most %d are allowed", n,
                       kPatternMax);
    while (t.at < n)
        TRY(translate_one(&t, err));
    TRY(buf_check(&t.out, "a regular expression", err));
    /* in Ruby's syntax $ and ^ match at every line */
    TRY(compile_pcre(out, buf_str(&t.out), t.out.len, PCRE2_MULTILINE | PCRE2_UCP, err));
cleanup:
    buf_release(&t.out);
    return st;
}

snap_status regex_compile_literal(regex **out, const char *s, size_t n, snap_err *err) {
    *out = NULL;
    return compile_pcre(out, s, n, PCRE2_LITERAL, err);
}

void regex_free(regex *r) {
    if (!r)
        return;
    pcre2_code_free(r->code);
    free(r);
}

bool regex_may_be_empty(const regex *r) {
    uint32_t may = 1;
    (void)pcre2_pattern_info(r->code, PCRE2_INFO_MATCHEMPTY, &may);
    return may;
}

/* ---- matching ---- */

regex_work *regex_work_new(void) {
    regex_work *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->data = pcre2_match_data_create(1, NULL);
    w->context = pcre2_match_context_create(NULL);
    w->stack = pcre2_jit_stack_create(kJitStackMin, kJitStackMax, NULL);
    if (!w->data || !w->context) {
        regex_work_free(w);
        return NULL;
    }
    if (w->stack) /* without a stack, the default of 32 KiB is used */
        pcre2_jit_stack_assign(w->context, NULL, w->stack);
    (void)pcre2_set_heap_limit(w->context, kMatchHeapKib);
    return w;
}

void regex_work_free(regex_work *w) {
    if (!w)
        return;
    pcre2_match_data_free(w->data);
    pcre2_match_context_free(w->context);
    pcre2_jit_stack_free(w->stack);
    free(w);
}

snap_status regex_find(const regex *r, regex_work *w, const char *s, size_t n, size_t from,
                       regex_match *match, bool *found, snap_err *err) {
    size_t steps = kMatchSteps + n * kMatchStepsPerByte;
    (void)pcre2_set_match_limit(w->context, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
    int rc = pcre2_match(r->code, (PCRE2_SPTR)s, n, from, PCRE2_NO_UTF_CHECK, w->data, w->context);
    *found = rc >= 0;
    if (rc == PCRE2_ERROR_NOMEMORY)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a match");
    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH)
        return err_set(err, SNAP_E_INPUT,
                       "a regular expression takes too many steps on a text of %zu bytes", n);
    if (*found) {
        const PCRE2_SIZE *at = pcre2_get_ovector_pointer(w->data);
        *match = (regex_match){at[0], at[1]};
    }
    return SNAP_OK;
}
