#include "evals/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "base/err.h"

enum { kMatchLimit = 1000000, kReplaceMax = 4096 };

static uint32_t options_of(const pattern *p) {
    static const uint32_t options[] = {PCRE2_UTF,     PCRE2_CASELESS, PCRE2_MULTILINE,
                                       PCRE2_LITERAL, PCRE2_ANCHORED, PCRE2_ENDANCHORED};
    uint32_t all = 0;
    for (unsigned i = 0; i < sizeof options / sizeof *options; i++)
        if (p->flags & 1u << i)
            all |= options[i];
    /* \C would split a character; a literal has no classes */
    bool classes = (all & PCRE2_UTF) && !(all & PCRE2_LITERAL);
    return classes ? all | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C : all;
}

/* NULL if the regex is not valid. */
static pcre2_code *compile(const pattern *p) {
    int code;
    PCRE2_SIZE at;
    pcre2_code *re =
        pcre2_compile((PCRE2_SPTR)p->regex, PCRE2_ZERO_TERMINATED, options_of(p), &code, &at, NULL);
    if (re)
        (void)pcre2_jit_compile(re, PCRE2_JIT_COMPLETE); /* if this fails, matching uses the
                                                            interpreter */
    return re;
}

bool pattern_compile(pattern *p) {
    if (!atomic_load(&p->code))
        atomic_store(&p->code, compile(p));
    return atomic_load(&p->code) != NULL;
}

void pattern_release(pattern *p) {
    pcre2_code_free(atomic_exchange(&p->code, NULL));
}

static pcre2_code *compiled(pattern *p) {
    void *mine, *theirs = atomic_load(&p->code);
    if (theirs)
        return theirs;
    mine = compile(p);
    if (!mine)
        SNAP_BUG(p->regex); /* cannot happen: these patterns are constants of the program */
    if (atomic_compare_exchange_strong(&p->code, &theirs, mine))
        return mine;
    pcre2_code_free(mine); /* another thread compiled it first */
    return theirs;
}

/* The data that a match needs. It is created for each call: one per thread would be enough, but
 * calls are rare, and this way nothing must be released later. */
typedef struct {
    pcre2_match_data *data;
    pcre2_match_context *context;
    bool checked; /* the text is known to be UTF-8 */
} matcher;

static bool matcher_open(matcher *m) {
    m->checked = false;
    m->data = pcre2_match_data_create(PATTERN_GROUPS, NULL);
    m->context = pcre2_match_context_create(NULL);
    if (m->context)
        (void)pcre2_set_match_limit(m->context, kMatchLimit);
    return m->data && m->context;
}

static void matcher_close(matcher *m) {
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->context);
}

static bool find_with(matcher *m, pattern *p, span text, size_t from, span groups[]) {
    int n = pcre2_match(compiled(p), (PCRE2_SPTR)text.s, text.n, from,
                        m->checked ? PCRE2_NO_UTF_CHECK : 0, m->data, m->context);
    if (n < 0)
        return false;
    m->checked = true;
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(m->data);
    for (int i = 0; i < PATTERN_GROUPS; i++) {
        bool set = i < n && at[2 * i] != PCRE2_UNSET;
        groups[i] = set ? (span){text.s + at[2 * i], at[2 * i + 1] - at[2 * i]} : (span){0};
    }
    return true;
}

bool pattern_find(pattern *p, span text, size_t from, span groups[PATTERN_GROUPS]) {
    span ignored[PATTERN_GROUPS];
    matcher m;
    bool found = matcher_open(&m) && find_with(&m, p, text, from, groups ? groups : ignored);
    matcher_close(&m);
    return found;
}

bool pattern_find_next(pattern *p, span text, size_t from, span groups[PATTERN_GROUPS]) {
    span ignored[PATTERN_GROUPS];
    matcher m;
    bool open = matcher_open(&m);
    m.checked = true;
    bool found = open && find_with(&m, p, text, from, groups ? groups : ignored);
    matcher_close(&m);
    return found;
}

bool pattern_find_last(pattern *p, span text, span groups[PATTERN_GROUPS]) {
    span next[PATTERN_GROUPS];
    matcher m;
    bool found = false, open = matcher_open(&m);
    for (size_t from = 0; open && from <= text.n && find_with(&m, p, text, from, next);) {
        memcpy(groups, next, sizeof next);
        found = true;
        from = (size_t)(next[0].s - text.s) + next[0].n + (next[0].n == 0);
    }
    matcher_close(&m);
    return found;
}

size_t pattern_count(pattern *p, span text) {
    span at[PATTERN_GROUPS];
    matcher m;
    size_t n = 0;
    bool open = matcher_open(&m);
    for (size_t from = 0; open && from <= text.n && find_with(&m, p, text, from, at); n++)
        from = (size_t)(at[0].s - text.s) + at[0].n + (at[0].n == 0);
    matcher_close(&m);
    return n;
}

bool pattern_replace(pattern *p, char *text, size_t cap, const char *replacement) {
    char out[kReplaceMax];
    PCRE2_SIZE n = cap < sizeof out ? cap : sizeof out;
    matcher m;
    int rc = -1;
    if (matcher_open(&m))
        rc = pcre2_substitute(compiled(p), (PCRE2_SPTR)text, strlen(text), 0,
                              PCRE2_SUBSTITUTE_GLOBAL | PCRE2_SUBSTITUTE_UNSET_EMPTY, m.data,
                              m.context, (PCRE2_SPTR)replacement, PCRE2_ZERO_TERMINATED,
                              (PCRE2_UCHAR *)out, &n);
    matcher_close(&m);
    if (rc > 0)
        memcpy(text, out, n + 1);
    return rc >= 0;
}
