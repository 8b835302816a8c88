#include "evals/pattern.h"

#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "evals/pattern_memory.h"

enum { kMatchLimit = 1000000, kReplaceMax = 4096, kMostSeconds = 10 };

static uint32_t options_of(const pattern *p) {
    static const uint32_t options[] = {PCRE2_UTF,     PCRE2_CASELESS, PCRE2_MULTILINE,
                                       PCRE2_LITERAL, PCRE2_ANCHORED, PCRE2_ENDANCHORED};
    uint32_t all = 0;
    for (unsigned i = 0; i < sizeof options / sizeof *options; i++)
        if (p->flags & 1u << i)
            all |= options[i];
    /* \C would match a part of a character, so it is forbidden; a literal has no classes */
    bool classes = (all & PCRE2_UTF) && !(all & PCRE2_LITERAL);
    return classes ? all | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C : all;
}

/* NULL if the regex is not valid, or after a noted fault if there is no memory for it. */
static pcre2_code *compile(const pattern *p) {
    int code;
    PCRE2_SIZE at;
    pcre2_compile_context *memory = NULL;
    if (p->flags & PATTERN_LONG)
        memory = pattern_memory();
    pcre2_code *re = pcre2_compile((PCRE2_SPTR)p->regex, PCRE2_ZERO_TERMINATED, options_of(p),
                                   &code, &at, memory);
    pcre2_compile_context_free(memory);
    if (re && (memory || !(p->flags & PATTERN_LONG)))
        (void)pcre2_jit_compile(re, PCRE2_JIT_COMPLETE); /* if this fails, matching uses the
                                                            interpreter */
    else if (!re && code == PCRE2_ERROR_HEAP_FAILED)
        fault_note(SNAP_E_NOMEM, "out of memory for the pattern '%.60s'", p->regex);
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

int pattern_groups(const pattern *p) {
    uint32_t n = 0;
    (void)pcre2_pattern_info(atomic_load(&p->code), PCRE2_INFO_CAPTURECOUNT, &n);
    return (int)n;
}

/* NULL after a noted fault. */
static pcre2_code *compiled(pattern *p) {
    void *mine, *theirs = atomic_load(&p->code);
    if (theirs)
        return theirs;
    fault_mark before = fault_begin();
    mine = compile(p);
    if (!mine && !fault_since(before))
        SNAP_BUG(p->regex); /* cannot happen: these patterns are constants of the program */
    if (!mine || atomic_compare_exchange_strong(&p->code, &theirs, mine))
        return mine;
    pcre2_code_free(mine); /* another thread compiled it first */
    return theirs;
}

/* The data that a match needs. Each call creates and releases it, so threads need not release
 * anything when they end. */
typedef struct {
    pcre2_match_data *data;
    pcre2_match_context *context;
    bool checked; /* the text is known to be UTF-8 */
} matcher;

static bool matcher_open(matcher *m) {
    m->checked = false;
    m->data = pcre2_match_data_create(PATTERN_GROUPS, NULL);
    m->context = pcre2_match_context_create(NULL);
    if (!m->data || !m->context) {
        fault_note(SNAP_E_NOMEM, "out of memory for a match");
        return false;
    }
    (void)pcre2_set_match_limit(m->context, kMatchLimit);
    return true;
}

static void matcher_close(matcher *m) {
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->context);
}

/* True for the error codes that describe the text: there is no match, or it is not UTF-8. */
static bool is_no_match(int code) {
    return code == PCRE2_ERROR_NOMATCH ||
           (code <= PCRE2_ERROR_UTF8_ERR1 && code >= PCRE2_ERROR_UTF8_ERR21);
}

/* Notes that a pattern could not be matched. */
static void note_failure(const pattern *p, size_t n, int code) {
    char why[120] = "";
    (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
    fault_note(SNAP_E_NOMEM, "the pattern '%.60s' cannot be matched with a text of %zu bytes: %s",
               p->regex, n, why);
}

static int match(const pcre2_code *code, const matcher *m, span text, size_t from, uint32_t flags) {
    const char *s = text.s ? text.s : "";
    return pcre2_match(code, (PCRE2_SPTR)s, text.n, from, flags, m->data, m->context);
}

/* Finds the first match at or after @from. False if there is none, or after a noted fault. */
static bool find_with(matcher *m, pattern *p, span text, size_t from, span groups[]) {
    const pcre2_code *code = compiled(p);
    const uint32_t flags = m->checked ? PCRE2_NO_UTF_CHECK : 0;
    int n = code ? match(code, m, text, from, flags) : PCRE2_ERROR_NOMEMORY;
    if (n == PCRE2_ERROR_JIT_STACKLIMIT) /* try the interpreter, whose stack is on the heap */
        n = match(code, m, text, from, flags | PCRE2_NO_JIT);
    if (n < 0) {
        if (code && !is_no_match(n))
            note_failure(p, text.n, n);
        return false;
    }
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

/* Each match has its own limit of steps, but a text can have very many matches. Notes a fault and
 * returns true if all of them together took too long. */
static bool takes_too_long(const pattern *p, int64_t since) {
    if (clock_now_ns() - since < kMostSeconds * (int64_t)1000000000)
        return false;
    fault_note(SNAP_E_NOMEM, "the pattern '%.60s' needs more than %d s for one text", p->regex,
               kMostSeconds);
    return true;
}

bool pattern_find_last(pattern *p, span text, span groups[PATTERN_GROUPS]) {
    span next[PATTERN_GROUPS];
    matcher m;
    bool found = false, open = matcher_open(&m);
    const int64_t start = clock_now_ns();
    for (size_t from = 0; open && from <= text.n && find_with(&m, p, text, from, next);) {
        memcpy(groups, next, sizeof next);
        found = true;
        if (takes_too_long(p, start))
            break;
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

/* The number of replacements, or an error code. *n: the room in @out, then the length of the
 * result. */
static int substitute(const pcre2_code *code, const matcher *m, const char *text,
                      const char *replacement, char *out, size_t *n, uint32_t also) {
    const uint32_t flags = PCRE2_SUBSTITUTE_GLOBAL | PCRE2_SUBSTITUTE_UNSET_EMPTY | also;
    return pcre2_substitute(code, (PCRE2_SPTR)text, strlen(text), 0, flags, m->data, m->context,
                            (PCRE2_SPTR)replacement, PCRE2_ZERO_TERMINATED, (PCRE2_UCHAR *)out, n);
}

bool pattern_replace(pattern *p, char *text, size_t cap, const char *replacement) {
    char out[kReplaceMax];
    const size_t room = cap < sizeof out ? cap : sizeof out;
    size_t n = room;
    matcher m;
    const pcre2_code *code = compiled(p);
    bool ready = matcher_open(&m) && code, too_long = false;
    int rc = ready ? substitute(code, &m, text, replacement, out, &n, 0) : PCRE2_ERROR_NOMATCH;
    if (rc == PCRE2_ERROR_NOMEMORY) {
        /* The same error code means that the result does not fit into `out`, or that memory ran
         * out. The second call tells them apart: only in the first case it returns a length. */
        n = room;
        rc = substitute(code, &m, text, replacement, out, &n, PCRE2_SUBSTITUTE_OVERFLOW_LENGTH);
        too_long = rc == PCRE2_ERROR_NOMEMORY && n != PCRE2_UNSET;
    }
    matcher_close(&m);
    if (rc > 0)
        memcpy(text, out, n + 1);
    if (rc < 0 && !too_long && !is_no_match(rc))
        note_failure(p, strlen(text), rc);
    return rc >= 0;
}
